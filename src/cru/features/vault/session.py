"""The vault of a session: tools for the model, what scripts reach, and events for what changes in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cru.core.base.config.layers import Settings
from cru.core.compose.start import Start, user_home
from cru.core.events import payloads as p
from cru.core.events.payloads import MessageReceived
from cru.core.guard.rules.paths import PathRoots, contains_secrets, resolve
from cru.core.turn.parts import Parts
from cru.features.vault import VaultTable, located, with_environment
from cru.features.vault.grounding import Grounding
from cru.features.vault.index.changes import ChangeKind, NoteChange
from cru.features.vault.live import LiveVault
from cru.features.vault.note_watcher import VaultWatcher
from cru.features.vault.tools import VaultTools


def find_vault(start: Start, settings: Settings) -> SessionVault | None:
    """The notes of a session; None if none are configured. Nothing is opened."""
    chosen = located(with_environment(settings.of(VaultTable).vault, start.env), start.root)
    if not chosen.path:
        return None
    live = LiveVault(chosen, start.home)
    root = resolve(live.root)
    is_open = not contains_secrets(root, PathRoots(root, resolve(start.home), resolve(user_home(start))))
    return SessionVault(live, (live.root,) if is_open else (), chosen.grounding)


class SessionVault:
    """readable: what the model may read of it as it reads the project: all of it, unless a protected place lies in it."""

    def __init__(self, live: LiveVault, readable: tuple[Path, ...], grounding: int) -> None:
        self.readable = readable
        self._live = live
        self._grounding = grounding

    def secrets(self, env: Mapping[str, str]) -> Iterable[str]:
        return ()

    def join(self, parts: Parts) -> None:
        """Tools have it, scripts reach it, what changes in it is told, and its notes stand beside prompts."""
        live = self._live

        async def tell(changes: Sequence[NoteChange]) -> None:
            for change in changes:
                for event in _events(change):
                    await parts.bus.dispatch(event)

        live.tell = tell
        parts.services.features["vault"] = live
        for tool in VaultTools(live, parts.tool_services.settings).tools():
            parts.tools.add(tool)
        self._watch(parts)
        if self._grounding:
            self._ground(parts)
        parts.services.lifecycle.closing.append(live.close)
        if not live.root.is_dir():
            parts.bus.stream.warn(f"the vault {live.root} is not there ([vault] path)")

    def _watch(self, parts: Parts) -> None:
        watcher: VaultWatcher | None = None

        async def watch(_: Parts | None = None) -> None:
            nonlocal watcher
            if parts.services.face.is_chat:
                watcher = watcher or VaultWatcher(parts, self._live)
                await watcher.consider()

        async def close() -> None:
            if watcher is not None:
                await watcher.close()

        parts.services.lifecycle.opening.append(watch)
        parts.services.lifecycle.idle.append(watch)
        parts.services.lifecycle.closing.append(close)

    def _ground(self, parts: Parts) -> None:
        grounding = Grounding(parts, self._live, self._grounding)
        parts.bus.registry.on(MessageReceived, grounding, owner="vault", where="[vault] grounding", on_error="pass")
        parts.services.lifecycle.closing.append(grounding.close)


def _events(change: NoteChange) -> Iterator[Struct]:
    path = change.path
    match change.kind:
        case ChangeKind.CREATED:
            yield p.FileChanged(path, "created")
            yield p.NoteParsed(path, change.blocks)
            yield p.NoteCreated(path, change.title)
        case ChangeKind.MODIFIED:
            yield p.FileChanged(path, "modified")
            yield p.NoteParsed(path, change.blocks)
            yield p.NoteModified(path, change.part.value if change.part else "content")
        case ChangeKind.DELETED:
            yield p.FileChanged(path, "deleted")
            yield p.NoteDeleted(path)
        case ChangeKind.RENAMED:
            yield p.NoteRenamed(change.old_path, path)
