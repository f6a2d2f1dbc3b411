"""What fills the ports of a session: records, the gate, services, environments."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cru.app.start import FaceSettings, Start, user_home
from cru.bundled.prompts import COMPACTION, GUIDES
from cru.config.layers import Layer
from cru.config.merge import Settings
from cru.contexts.entries import new_id
from cru.contexts.home import Home
from cru.contexts.line_file import LineFile, make_redactor
from cru.contexts.settings import ContextSettings
from cru.contexts.store import FileContext
from cru.engine.mail import make_sender
from cru.engine.model_pool import ModelPool
from cru.engine.parts import Dialogs, Parts, SessionServices
from cru.engine.recorder import Recorder
from cru.events.bus import Bus
from cru.events.journal import JournalLine
from cru.events.payloads import TodoChanged
from cru.events.stamp import Origin
from cru.extensions.hooks.settings import HookSettings
from cru.models.settings import ModelSettings
from cru.permissions.asker import Asker
from cru.permissions.gate import Gate
from cru.permissions.grants import Grants
from cru.permissions.settings import PermissionSettings, layer_rules
from cru.tools.builtin import BuiltIn
from cru.tools.output import FOLDER
from cru.tools.protocol import ToolServices
from cru.tools.settings import ToolSettings

if TYPE_CHECKING:
    from cru.net.http import Fetched

Redact = Callable[[bytes], bytes] | None


def bus(store: FileContext, watch: Callable[[Bus], None] | None) -> Bus:
    bus = Bus(Origin(store.session_id, new_id()[:8]))
    if watch is not None:
        watch(bus)
    return bus


def records(bus: Bus, store: FileContext, redact: Redact) -> tuple[LineFile, LineFile]:
    """The journal, which the bus writes, and the trace."""
    journal = LineFile(store.folder / "journal.jsonl", redact=redact)
    bus.sink = _Journal(journal)
    return journal, LineFile(store.folder / "trace.jsonl", limit_bytes=None, redact=redact)


class _Journal:
    """The journal's sink: one line a dispatch, in the context's folder."""

    def __init__(self, lines: LineFile) -> None:
        self._lines = lines
        self._encode = msgspec.json.Encoder(enc_hook=repr).encode

    def write(self, line: JournalLine) -> None:
        self._lines.write(self._encode(line) + b"\n")


def recorder(trace: LineFile, folder: Path, redact: Redact, debug: tuple[str, ...]) -> Recorder:
    """What records requests; `debug`: the names of --debug."""
    if not debug:
        return Recorder(trace, folder, redact)
    from cru.engine.debug import DebugRecorder

    return DebugRecorder(trace, folder, redact, debug)


def tidy_at_the_end(parts: Parts, settings: ToolSettings) -> None:
    """When the session is over, saved outputs that are too old go."""

    async def tidy() -> None:
        from cru.tools.output import clean_outputs

        try:
            clean_outputs(parts.store.folder, settings.tool_cache_max_age_days, parts.store.visible)
        except OSError as error:
            parts.bus.stream.warn(f"old outputs in {error.filename or parts.store.folder} stay: {error.strerror}")

    if settings.auto_cleanup_cache and os.path.isdir(parts.store.folder / FOLDER):
        parts.lifecycle.closing.append(tidy)


def closing(voices: ModelPool, *files: FileContext | LineFile) -> Callable[[], Awaitable[None]]:
    """What ends a session's hold on connections and files."""

    async def close() -> None:
        await voices.close()
        for file in files:
            file.close()

    return close


def built_in(settings: Settings) -> BuiltIn:
    about = settings.of(ContextSettings)
    return BuiltIn(
        settings.of(ToolSettings),
        reflection=about.reflection_enabled,
        reflection_limit=about.reflection_character_limit,
    )


def build_gate(start: Start, settings: Settings, layers: list[Layer], store: FileContext) -> tuple[Gate, list[str]]:
    """The gate, and what is odd about the grants: an unreadable file."""
    grants = Grants(start.home / "grants.json", start.root)
    rules = layer_rules(layers)
    chosen = settings.of(PermissionSettings)
    readable = (store.folder / "tool_cache", Path(GUIDES))
    gate = Gate(chosen, rules, start.root, start.home, grants, readable=readable, user_home=user_home(start))
    return gate, [str(p) for p in grants.problems]


async def check_rules(parts: Parts) -> None:
    """Tell which rules name no tool, once every plugin has brought its own."""
    rules = [rule for rule in parts.gate.rules() if parts.tools.find(rule.tool) is None]
    if rules:
        from cru.permissions.rules import unknown_tools

        for problem in unknown_tools(rules, parts.tools.names()):
            parts.bus.stream.warn(str(problem))


def tool_services(bus: Bus, home: Home, store: FileContext, voices: ModelPool, gate: Gate) -> ToolServices:
    """What built-in tools borrow; without rules nothing is denied while they run."""

    async def fetch(url: str, **limits: Any) -> Fetched:
        return await voices.transport().get(url, {}, **limits)

    async def todos_changed() -> None:
        await bus.dispatch(TodoChanged(store.name, store.read_text("todos.md")))

    def why_not_fetch(url: str) -> str:
        verdict = gate.judge("fetch", "fetch", url)
        return verdict.why if verdict.decision == "deny" else ""

    def why_not_read(path: str) -> str:
        verdict = gate.judge("read", "read", path, [("read", path)])
        return verdict.why if verdict.decision == "deny" else ""

    lent = ToolServices(
        store=store, home=home, send=make_sender(bus, home, store.name), fetch=fetch, todos_changed=todos_changed
    )
    if gate.rules():
        lent.why_not_fetch, lent.why_not_read = why_not_fetch, why_not_read
    return lent


def session_services(voices: ModelPool, settings: Settings, asker: Asker | None) -> SessionServices:
    """What the rooms above the engine borrow; whoever asks a person for permission may show dialogs, too."""
    return SessionServices(
        settings=settings,
        transport=voices.transport,
        dialogs=asker if isinstance(asker, Dialogs) else None,
        is_verbose=settings.of(FaceSettings).verbose,
    )


def take_keys(settings: Settings, env: Mapping[str, str]) -> Redact:
    """What takes the keys out of records; None if there are none. `env` has them: code that runs in this process need not see them."""
    from cru.models.providers import KEY_VARIABLES, secrets

    for name in set(KEY_VARIABLES).difference(settings.of(HookSettings).options.env_pass):
        os.environ.pop(name, None)
    known = secrets(settings.of(ModelSettings), env)
    return make_redactor(known) if known else None


def children_env(start: Start) -> dict[str, str]:
    """The environment of tools: everything but the keys of providers; where cru is, in our own names."""
    from cru.models.providers import KEY_VARIABLES

    env = {key: value for key, value in start.env.items() if key not in KEY_VARIABLES}
    return {**env, "CRU_CONTEXT": start.context, "CRU_HOME": str(start.home), "CRU_PROJECT_ROOT": str(start.root)}


def compaction_prompt(home: Path) -> str:
    try:
        return (home / "prompts" / "compaction.md").read_text("utf-8", "replace")
    except FileNotFoundError:
        return COMPACTION
