"""What changes in the vault while a chat goes on is told as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cru.core.base.values.errors import CruError
from cru.core.events import payloads as p
from cru.core.turn.parts import Parts
from cru.features.vault.live import LiveVault
from cru.features.vault.watch import MANY, FileEvent, is_note, watch_vault

EVENTS = frozenset({"file:changed", "note:parsed", "note:created", "note:modified", "note:deleted", "note:renamed"})
DELAY = 1.0
"""Seconds that the first request of a chat has to itself."""


class VaultWatcher:
    """Watches once somebody listens to those events, or the vault is in use; in a session that lives on only."""

    def __init__(self, parts: Parts, live: LiveVault) -> None:
        self._parts = parts
        self._live = live
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._has_failed = False

    async def consider(self) -> None:
        """Begin, if it is time to."""
        has_ended = self._task is None or self._task.done()
        if self._parts.services.face.is_chat and has_ended and not self._has_failed and not self._stop.is_set():
            self._task = asyncio.create_task(self._run(), name="cru: watch the vault")

    async def close(self) -> None:
        self._stop.set()
        if self._task is not None:
            await self._task

    def _is_needed(self) -> bool:
        return self._live.is_open or bool(EVENTS & self._parts.bus.registry.by_event.keys())

    async def _run(self) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), DELAY)
        except TimeoutError:
            if self._is_needed():
                await self._watch()

    async def _watch(self) -> None:
        try:
            covers = await self._live.run(lambda vault: vault.is_covered)
            async for events in watch_vault(self._live.root, self._stop, covers):
                await self._tell(events)
        except (
            CruError,
            OSError,
            RuntimeError,
        ) as error:  # of the system's notifications: too many watches, no permission
            self._has_failed = True
            self._parts.bus.stream.warn(f"the vault is not watched any more: {error}")

    async def _tell(self, events: Sequence[FileEvent]) -> None:
        """Notes as the index sees them, so what cru wrote itself is not told again; other files as the system does."""
        notes = [event.path for event in events if is_note(event.path)]
        others = [event for event in events if not is_note(event.path)]
        folders = {event.path for event in others if (self._live.root / event.path).is_dir()}
        may_be_folder = folders or any(event.kind == "deleted" for event in others)
        if may_be_folder or len(notes) > MANY:
            await self._live.refresh()
        elif notes:
            await self._live.refresh(notes)
        for event in others:
            if event.path not in folders:
                await self._parts.bus.dispatch(p.FileChanged(event.path, event.kind))
