"""The composition root: builds a session out of the parts, and fills every port."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.core.agents import TaskTable
from cru.core.base.config.layers import Layer, Settings
from cru.core.compose import wiring
from cru.core.compose.sandbox import add_sandbox
from cru.core.compose.start import (
    SETTINGS,
    FaceSettings,
    Start,
    find_guides,
    find_parts,
    find_prompt_files,
    hooks_where,
    load_settings,
    parent_context,
    plugin_places,
    project_root,
)
from cru.core.compose.wiring import BadExtension
from cru.core.conversations import ContextSettings
from cru.core.conversations.home import Home
from cru.core.conversations.line_file import SHORTEST_SECRET, make_redactor
from cru.core.conversations.store import FileContext
from cru.core.events.bus import Bus
from cru.core.guard.rules.gate import Asker
from cru.core.hooks import HookSettings, merge_options
from cru.core.models import ModelSettings
from cru.core.models.providers import BASE_URL, KEY_VARIABLES, other_keys, own_keys, secret_names, secrets_in_base_url
from cru.core.tools.builtin import ToolRegistry as Tools
from cru.core.tools.protocol import SecretVariables, Spawner, ToolSettings, ToolSource
from cru.core.turn.commands import Command, Commands
from cru.core.turn.history import History
from cru.core.turn.model_pool import ModelPool, with_keys
from cru.core.turn.parts import EngineSettings, Parts, PromptParts, SessionServices, Workplace
from cru.core.turn.session import Session
from cru.core.turn.spending import UsageLedger

if TYPE_CHECKING:
    from cru.core.command_table import SessionPart
    from cru.core.commands.context import Face
    from cru.core.events.bus import Extension
    from cru.core.plugins.manager import Extensions
    from cru.core.revisions.keeper import ChangeKeeper


class SessionBundle(Struct):
    """A session ready to run, and what a face may want to look at.

    close: ends the session's hold on connections and files
    models: those that it may ask
    extensions: its plugins; None: there are none
    face: makes what commands ask of the face; None: nobody sits there
    """

    session: Session
    settings: Settings
    home: Home
    store: FileContext
    close: Callable[[], Awaitable[None]]
    models: ModelPool
    extensions: Extensions | None = None
    face: Callable[[], Face] | None = None


def build(
    start: Start, *, extensions: Iterable[Extension] = (), sources: Iterable[ToolSource] = (), asker: Asker | None = None,
    command: str = "cru", watch: Callable[[Bus], None] | None = None,
) -> SessionBundle:  # fmt: skip
    """Build a session. `watch` may subscribe to the stream before anything is published on it. Raises CruError."""
    settings, layers, notices = load_settings(start)
    context_settings, engine = settings.of(ContextSettings), settings.of(EngineSettings)
    parent_name = parent_context(start, engine.max_nested_runs)
    home = Home(start.store, context_settings, start.project)
    problems, store = home.prepare(), wiring.open_store(home, start)
    notices += [*wiring.enlist(home, store), *wiring.model_problems(settings, start.env)]
    bus = wiring.make_bus(store, watch, (*(p.text(start.store) for p in problems), *notices))
    files = find_prompt_files(start, settings)
    brought = [*find_parts(start, settings), *filter(None, (files,))]
    secrets = secret_variables(start, settings, bus.stream.warn)
    redact = _remove_keys_from_env(start, settings, layers, brought, secrets.hidden)
    journal, trace = wiring.open_records(bus, store, redact)
    models = ModelPool(bus, settings.of(ModelSettings), start.env, start.home / "models", UsageLedger(engine.budget))
    gate = wiring.build_gate(start, settings, layers, store, [path for part in brought for path in part.readable])
    guides = find_guides(start, engine.guides, gate, start.root, start.cwd)
    parts = Parts(
        bus=bus, store=store, history=History(), gate=gate, settings=engine, models=models.access,
        tools=Tools([wiring.built_in_tools(settings, start), *sources]),
        prompt=PromptParts(
            sections=wiring.section_source(start, store, context_settings, guides, files), guides=guides,
            compaction=wiring.compaction_prompt(start.home), username=context_settings.username, parent=parent_name,
        ),
        place=Workplace(root=start.root, env=children_env(start, settings), secrets=secrets),
        recorder=wiring.make_recorder(bus, trace, store, redact, start.debug),
        tool_services=wiring.tool_services(bus, home, store, models, gate, settings.of(ToolSettings)),
        services=SessionServices(
            face=wiring.face_services(settings, asker), settings=settings,
            commands=Commands(lambda: built_in_commands(built, models)),
        ),
    )  # fmt: skip
    _lend_spawner(parts, start, settings, home, models, redact)
    plugins = _add_extensions(parts, start, settings, layers, brought, extensions, redact)
    store.attend(command)
    close = wiring.make_close(models, store, journal, trace)
    built = SessionBundle(Session(parts, command), settings, home, store, close, models, plugins)
    return built


def _add_extensions(
    parts: Parts,
    start: Start,
    settings: Settings,
    layers: list[Layer],
    brought: Iterable[SessionPart],
    extensions: Iterable[Extension],
    redact: wiring.Redact,
) -> Extensions | None:
    """What is brought to a session beside cru itself; returns the plugins. Raises BadExtension, Untrusted."""
    add_sandbox(parts, start, settings)
    for part in brought:
        part.join(parts)
    plugins = wiring.add_extensions(parts, start, settings, extensions)
    hook_options = merge_options(settings.of(HookSettings).options, layers)
    wiring.add_hooks(parts, start, hook_options, redact, plugins)
    for text in (*parts.bus.registry.problems, *parts.tools.problems):
        parts.bus.stream.warn(text)
    return plugins


def _keep_changed_files(parts: Parts, start: Start, settings: Settings) -> None:
    """Files are kept before tools change them; nothing of that is loaded before one does."""
    changes = parts.services.changes
    changes.context = parts.store.name
    if settings.is_set("undo"):
        from cru.core.revisions import UndoTable

        if not settings.of(UndoTable).undo.enabled:
            return

    def make() -> ChangeKeeper:
        from cru.core.revisions import UndoTable
        from cru.core.revisions.keeper import ChangeKeeper
        from cru.core.revisions.store import RevisionStore, project_folder

        chosen = settings.of(UndoTable) if settings.has(UndoTable) else UndoTable()
        keeper = ChangeKeeper(
            RevisionStore(project_folder(start.store, start.root), chosen.undo), parts.bus.stream.warn
        )

        async def close() -> None:
            await keeper.close()

        parts.services.lifecycle.closing.append(close)
        return keeper

    async def roll_back() -> None:
        if os.path.exists(parts.store.folder / "undo.jsonl"):
            from cru.core.undo.journal import roll_back

            roll_back(parts)

    changes.make = make
    changes.lend(parts)
    parts.services.lifecycle.idle.append(roll_back)


def _lend_spawner(
    parts: Parts, start: Start, settings: Settings, home: Home, models: ModelPool, redact: wiring.Redact
) -> None:
    """Tools may start sub-agents; nothing of them is loaded before one does. What they leave running ends with the session, and
    files are kept before they change them."""
    _end_left_running(parts)
    _keep_changed_files(parts, start, settings)

    tasks: Spawner | None = None

    def spawner() -> Spawner:
        nonlocal tasks
        if tasks is not None:
            return tasks
        from cru.core.compose.children import ChildBuilder, make_tasks

        build = ChildBuilder(start, home, settings.of(ContextSettings), models, redact)
        tasks = make_tasks(parts, build, settings.of(TaskTable))
        return tasks

    parts.tool_services.spawner = spawner
    wiring.tell_lost_tasks(parts, settings.of(TaskTable).tasks)


def _end_left_running(parts: Parts) -> None:
    """What commands of tools have left running ends with the session, and the person hears of it; also if something ended what does
    that after a kill."""
    warn = parts.bus.stream.warn

    async def listen(_: Parts) -> None:
        _guardian_listeners().append(warn)

    async def end() -> None:
        if warn in (listeners := _guardian_listeners()):
            listeners.remove(warn)
        guardian = getattr(asyncio.get_running_loop(), "guardian", None)
        if guardian is None or not guardian.session:
            return
        from cru.core.base.process.left_running import end_left_running

        if names := await end_left_running(guardian):
            warn(f"what commands had left running ended with the session: {', '.join(names)}")

    parts.services.lifecycle.opening.append(listen)
    parts.services.lifecycle.closing.append(end)


def _guardian_listeners() -> list[Callable[[str], object]]:
    """Those of this loop (cru.core.base.process.guardian.Listener), if it has any."""
    listeners: list[Callable[[str], object]] = getattr(asyncio.get_running_loop(), "guardian_listeners", [])
    return listeners


def built_in_commands(built: SessionBundle, models: ModelPool) -> Iterable[Command]:
    """They are loaded when the first command is typed."""
    from cru.core.commands.context import CommandContext, NoFace
    from cru.core.commands.from_table import built_in

    face = NoFace() if built.face is None else built.face()
    return built_in(CommandContext(built.session, models, face, built.extensions))


def children_env(start: Start, settings: Settings) -> dict[str, str]:
    """The environment of children: everything but cru's own keys, as far as the person does not pass them on by name, and an address with
    a key in it; where cru is, in our own names."""
    passed = _passed_keys(settings)
    env = {key: value for key, value in start.env.items() if key not in KEY_VARIABLES or key in passed}
    if secrets_in_base_url(env.get(BASE_URL, "")):
        del env[BASE_URL]
    own = {"CRU_CONTEXT": start.context, "CRU_HOME": str(start.home), "CRU_PROJECT_ROOT": str(start.root)}
    return {**env, **own, **_careful_git(env)}


def secret_variables(start: Start, settings: Settings, warn: Callable[[str], None]) -> SecretVariables:
    """What of it the model's commands do not get, and which keys of cru itself no result shows."""
    own = own_keys(settings.of(ModelSettings), with_keys(start.env, start.home))
    hidden = tuple(key for key in own if len(key) >= SHORTEST_SECRET)
    return SecretVariables(secret_names(start.env, _passed_keys(settings)), warn, hidden=hidden)


def _remove_keys_from_env(
    start: Start, settings: Settings, layers: Iterable[Layer], brought: Iterable[SessionPart], own: Sequence[str]
) -> Callable[[bytes], bytes] | None:
    """What takes the keys, and secrets of what joins the session, out of records; None if there are none. Code that runs in this process
    need not see them."""
    passed = merge_options(settings.of(HookSettings).options, layers).env_pass
    for name in set(KEY_VARIABLES).difference(passed):
        os.environ.pop(name, None)
    known = [*own, *other_keys(start.env)]
    known += [secret for part in brought for secret in part.secrets(start.env)]
    return make_redactor(known) if known else None


def _passed_keys(settings: Settings) -> list[str]:
    if not settings.is_set("tools"):
        return []
    from cru.core.tools.secret_variables import ToolsTable

    return settings.of(ToolsTable).tools.env_pass


def _careful_git(env: Mapping[str, str]) -> dict[str, str]:
    """git takes no folder for a repository only because it looks like a bare one: any checkout can hold such a folder, with settings that
    run programs (`core.fsmonitor`)."""
    count = env.get("GIT_CONFIG_COUNT", "")
    at = int(count) if count.isascii() and count.isdigit() else 0
    if any(
        env.get(f"GIT_CONFIG_KEY_{index}", "").casefold() == "safe.barerepository" for index in range(min(at, 1000))
    ):
        return {}  # who started cru has decided, or an outer run of it
    return {
        "GIT_CONFIG_COUNT": str(at + 1), f"GIT_CONFIG_KEY_{at}": "safe.bareRepository", f"GIT_CONFIG_VALUE_{at}": "explicit",
    }  # fmt: skip


__all__ = [
    "SETTINGS", "BadExtension", "SessionBundle", "FaceSettings", "Start", "build", "hooks_where", "load_settings", "plugin_places",
    "project_root",
]  # fmt: skip
