"""Makes the parts of a session, and adds what other people bring: extensions, plugins, command hooks."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cru.core.agents import FOLDER, UNTOLD, CardPlaces, TaskSettings
from cru.core.base.bundled import BASE, COMPACTION, GUIDES
from cru.core.base.config.layers import Layer, Settings
from cru.core.base.files import MAX_BYTES
from cru.core.base.files.regular import read_regular
from cru.core.base.values.errors import CruError
from cru.core.command_table import FEATURES, load_target
from cru.core.compose.start import FaceSettings, Start, card_places, hooks_where, plugin_places, user_home
from cru.core.conversations import ContextSettings, StoreUnwritable, read_error
from cru.core.conversations.entries import new_id
from cru.core.conversations.home import Home
from cru.core.conversations.identity import is_name
from cru.core.conversations.line_file import LineFile
from cru.core.conversations.store import FileContext
from cru.core.events.bus import Bus
from cru.core.events.journal import JournalLine
from cru.core.events.payloads import TodoChanged, TurnComplete
from cru.core.events.stamp import Origin
from cru.core.guard.rules import PermissionSettings, layer_rules
from cru.core.guard.rules.gate import Asker, Gate, NoAsker
from cru.core.guard.rules.grants import Grants
from cru.core.guard.rules.paths import named_secrets, resolve
from cru.core.hooks import HookOptions, HookSetup
from cru.core.hooks.watcher import HookWatcher
from cru.core.models import ModelSettings
from cru.core.plugins import PATH_VARIABLES, PluginSettings
from cru.core.plugins.packages import installed_packages
from cru.core.tools.builtin import BuiltInTools
from cru.core.tools.protocol import OUTPUT_FOLDER, ToolRules, ToolServices, ToolSettings
from cru.core.turn.model_pool import ModelPool
from cru.core.turn.parts import FaceServices, Parts, SectionSource, SessionServices
from cru.core.turn.recorder import Recorder
from cru.core.turn.settling import inject_recursion
from cru.core.turn.system_prompt import Guides, PromptSources, build_sections

if TYPE_CHECKING:
    from cru.core.base.net import WholeResponse
    from cru.core.compose.prompt_files import PromptFilesHere
    from cru.core.events.bus import Extension
    from cru.core.plugins.manager import Extensions
    from cru.core.tools.ports import WebRules
    from cru.core.turn.ports import Dialogs
    from cru.core.turn.turn import TaskReport


class BadExtension(CruError):
    """Code that was to be registered raised."""


def register_extensions(bus: Bus, extensions: Iterable[Extension]) -> None:
    """The built-in handlers first, then everybody's, in order. Raises BadExtension."""
    bus.registry.on(TurnComplete, inject_recursion, owner="cru", where="recurse", priority=0)
    for extension in extensions:
        try:
            extension.register(bus)
        except (Exception, SystemExit) as error:  # the boundary around other people's code: told as what it is
            raise BadExtension(f"{extension.owner} cannot be registered: {type(error).__name__}: {error}") from error


def add_extensions(
    parts: Parts, start: Start, settings: Settings, extensions: Iterable[Extension]
) -> Extensions | None:
    """Built-in handlers, extensions and plugins, and what is done around a session; returns the plugins. Raises
    BadExtension."""
    register_extensions(parts.bus, extensions)
    plugins = add_plugins(parts.services, start, settings)
    parts.services.lifecycle.opening += [bind_saved_state, partial(check_rules, strict=start.strict_hooks)]
    places = card_places(start)
    if places.has_own():
        from cru.core.agents.discovery import tell_cards

        parts.services.lifecycle.opening.append(partial(tell_cards, places))
    if start.agent:
        from cru.core.compose.main_card import find_card, mark_of, narrow_tools, tell_model

        card = find_card(start.agent, places)
        parts.prompt.card = mark_of(card)
        parts.services.lifecycle.opening += [
            partial(narrow_tools, card=card),
            partial(tell_model, card=card, settings=settings),
        ]
    clean_cache_at_end(parts, settings.of(ToolSettings))
    return plugins


def add_plugins(services: SessionServices, start: Start, settings: Settings) -> Extensions | None:
    """All plugins, if there may be any; they are loaded when the session opens."""
    chosen = settings.of(PluginSettings)
    if "verify" in chosen.discipline.use and "verify" not in settings.as_dict():
        raise CruError("[discipline] use: `verify` needs a command", 'set `[verify] command = "make test"`')
    is_configured = chosen.plugins or chosen.runtimepath or any(start.env.get(name) for name in PATH_VARIABLES)
    folders = (start.home / "plugins", start.root / ".cru" / "plugins")
    has_own = any(map(os.path.lexists, (*folders, start.home / "init.lua")))  # what is none is told
    if not (is_configured or has_own or installed_packages(start.home)):
        return None
    from cru.core.plugins.manager import Extensions

    extensions = Extensions(plugin_places(start, settings), chosen.plugins, start.home, start.strict_hooks)
    services.lifecycle.opening += [extensions.open, extensions.require]
    services.lifecycle.reloading.append(extensions.prepare_prompt)
    services.lifecycle.closing.append(extensions.close)
    return extensions


async def bind_saved_state(parts: Parts) -> None:
    """Features whose saved state guards something hold it, even if no plugin could be loaded that would do so. Raises FeatureMissing."""
    try:
        saved = read_regular(parts.store.folder / "plugin-state.json", MAX_BYTES)
    except FileNotFoundError:
        return
    except OSError:
        saved = None  # nobody knows
    for feature in FEATURES:
        for prefix, target in feature.saved.items():
            if saved is None or f'"{prefix}'.encode() in saved:
                load_target(feature.target(target))(parts)


def tell_lost_tasks(parts: Parts, settings: TaskSettings) -> None:
    """What a killed run has left of its tasks is told before the next prompt, or when that run is resumed."""
    untold = parts.store.folder / FOLDER / UNTOLD
    recovery: Callable[[], Awaitable[TaskReport | None]] | None = None

    async def recover() -> TaskReport | None:
        nonlocal recovery
        if recovery is None:
            if not os.path.isdir(untold):
                return None
            from cru.core.agents.recovery import TaskRecovery

            recovery = TaskRecovery(parts, settings.result_limit)
        return await recovery()

    async def tell() -> None:
        if os.path.isdir(untold):
            from cru.core.turn.unfinished import tell_lost_tasks

            await tell_lost_tasks(parts)

    parts.services.tasks.recover = recover
    parts.services.lifecycle.idle.append(tell)


def add_hooks(parts: Parts, start: Start, options: HookOptions, redact: Redact, plugins: Extensions | None) -> None:
    """Command hooks; nothing of them is loaded before a file is there that may hold some. Raises Untrusted."""
    if start.hooks == "none":
        return
    setup = HookSetup(hooks_where(start), options, start.hooks, start.strict_hooks, parts, redact, plugins)
    watcher = HookWatcher(setup)
    watcher.load()
    parts.services.lifecycle.opening.append(watcher.check)
    parts.services.lifecycle.reloading.append(watcher.reload)


Redact = Callable[[bytes], bytes] | None


def open_store(home: Home, start: Start) -> FileContext:
    """The context of the run. Raises ContextError."""
    store = home.open(start.context)
    if start.copy_through:
        store.copy_through(start.copy_through)
    return store


def enlist(home: Home, store: FileContext) -> list[str]:
    """See that the home lists the context; what is wrong if it cannot: the session works without."""
    try:
        home.enlist(store.name)
    except StoreUnwritable as error:
        return [error.message]
    return []


def model_problems(settings: Settings, env: Mapping[str, str]) -> list[str]:
    """What is wrong with categories and prices."""
    chosen = settings.of(ModelSettings)
    if not chosen.categories and not chosen.models:
        return []
    from cru.core.models.categories import find_problems

    return list(find_problems(chosen, env))


def make_bus(store: FileContext, watch: Callable[[Bus], None] | None, notices: Iterable[str]) -> Bus:
    """The main agent's bus; `watch` hears what is known so far."""
    bus = Bus(Origin(store.session_id, new_id()[:8]))
    if watch is not None:
        watch(bus)
    for text in notices:
        bus.stream.warn(text)
    return bus


def open_records(bus: Bus, store: FileContext, redact: Redact) -> tuple[LineFile, LineFile]:
    """The journal, which the bus writes, and the trace."""
    journal = LineFile(store.folder / "journal.jsonl", store.record_limits, redact)
    bus.sink = _Journal(journal)
    return journal, LineFile(store.folder / "trace.jsonl", store.record_limits, redact)


class _Journal:
    """The journal's sink: one line a dispatch, in the context's folder."""

    def __init__(self, lines: LineFile) -> None:
        self._lines = lines
        self._encode = msgspec.json.Encoder(enc_hook=repr).encode

    def write(self, line: JournalLine) -> None:
        self._lines.write(self._encode(line) + b"\n")


def make_recorder(bus: Bus, trace: LineFile, store: FileContext, redact: Redact, debug: tuple[str, ...]) -> Recorder:
    """What records requests; `debug`: the names of --debug."""
    if not debug:
        return Recorder(trace, store.folder, redact, store.record_limits, bus.stream.warn)
    from cru.core.turn.debug import DebugRecorder

    return DebugRecorder(trace, store.folder, redact, store.record_limits, bus.stream.warn, debug)


def clean_cache_at_end(parts: Parts, settings: ToolSettings) -> None:
    """When the session is over, saved outputs that are too old go."""

    async def tidy() -> None:
        from cru.core.tools.output import clean_outputs

        try:
            clean_outputs(parts.store.folder, settings.tool_cache_max_age_days, parts.store.visible)
        except OSError as error:
            parts.bus.stream.warn(f"old outputs in {error.filename or parts.store.folder} stay: {error.strerror}")

    if settings.auto_cleanup_cache and os.path.isdir(parts.store.folder / OUTPUT_FOLDER):
        parts.services.lifecycle.closing.append(tidy)


def make_close(models: ModelPool, *files: FileContext | LineFile) -> Callable[[], Awaitable[None]]:
    """What ends a session's hold on connections and files."""

    async def close() -> None:
        await models.close()
        for file in files:
            file.close()

    return close


def section_source(
    start: Start, store: FileContext, about: ContextSettings, guides: Guides, files: PromptFilesHere | None
) -> SectionSource:
    """What builds the system prompt."""
    places = card_places(start)
    base, name = BASE, ""
    if start.agent:
        from cru.core.compose.main_card import find_card

        card = find_card(start.agent, places)
        base, name = card.prompt or BASE, card.name
    own_agents, skills = partial(_own_agents, places), files.skills if files is not None else None
    where = start.home, start.root, start.cwd, user_home(start)
    sources = PromptSources(*where, base, name, own_agents, guides, skills.section if skills else None)
    return lambda: build_sections(store, sources, about.username, about.reflection_enabled)


def _own_agents(places: CardPlaces) -> str:
    """The agents that did not come with cru."""
    if not places.has_own():
        return ""
    from cru.core.agents.discovery import describe_cards

    return describe_cards(places)


def built_in_tools(settings: Settings, start: Start | None = None) -> BuiltInTools:
    context = settings.of(ContextSettings)
    return BuiltInTools(
        settings.of(ToolSettings),
        reflection=context.reflection_enabled,
        reflection_limit=context.reflection_character_limit,
        is_private=start is not None and start.private is not None,
    )


def build_gate(
    start: Start, settings: Settings, layers: list[Layer], store: FileContext, readable: Iterable[Path]
) -> Gate:
    """readable: what may be read as the project is, beside what is read in every session."""
    grants = Grants(start.home / "grants.json", start.root, start.private is None)
    rules = layer_rules(layers)
    chosen = settings.of(PermissionSettings)
    readable = (store.folder / OUTPUT_FOLDER, Path(GUIDES), *readable)
    user = user_home(start)
    secrets = named_secrets(start.env, resolve(start.root), resolve(user))
    gate = Gate(chosen, rules, start.root, start.home, grants, readable=readable, user_home=user, secrets=secrets)
    if not start.agent:
        return gate
    from cru.core.compose.main_card import find_card

    return gate.narrowed(find_card(start.agent, card_places(start)).mode)


async def check_rules(parts: Parts, strict: bool = False) -> None:
    """Tell which rules name no tool, once every plugin has brought its own. Raises SettingsLost if none may be lost."""
    rules = [rule for rule in parts.gate.rules() if parts.tools.find(rule.tool) is None]
    if rules:
        from cru.core.compose.project_settings import SettingsLost
        from cru.core.guard.rules.rules import unknown_tools

        problems = [str(problem) for problem in unknown_tools(rules, parts.tools.names())]
        if strict and problems:
            raise SettingsLost(problems, "mend [permissions]", "not every rule can hold:")
        for text in problems:
            parts.bus.stream.warn(text)


def tool_services(
    bus: Bus, home: Home, store: FileContext, models: ModelPool, gate: Gate, settings: ToolSettings
) -> ToolServices:
    """What built-in tools borrow. The gate may take over rules of other programs later."""

    async def fetch(url: str, **limits: Any) -> WholeResponse:
        return await models.transport().get(url, {}, **limits)

    async def send(to: str, content: str, sender: str | None) -> str:
        from cru.core.turn.mail import InboxMessage, send_message

        sentence = await send_message(bus, home, InboxMessage(store.name, to, content))
        return (
            sentence
            if sender in (None, store.name)
            else f"{sentence} (from {store.name}: senders go by their own name)"
        )

    async def todos_changed() -> None:
        await bus.dispatch(TodoChanged(store.name, store.read_text("todos.md")))

    def web_rules() -> WebRules:
        from cru.core.tools.web_leave import FetchLeave

        return FetchLeave(gate)

    def why_foreign(name: str) -> str:
        origin = home.foreign_origin(name) if is_name(name) and gate.mode != "trust" else ""
        return f"it is a conversation about another project, {origin}" if origin else ""

    rules = ToolRules(
        judge_read=lambda path: gate.judge("read", "read", path, [("read", path)]),
        hidden_files=gate.hidden_files,
        web=web_rules,
        why_foreign=why_foreign,
        why_model=lambda name: models.why_elsewhere(name) if gate.mode != "trust" else "",
    )
    return ToolServices(
        settings=settings, store=store, home=home, send=send, fetch=fetch, todos_changed=todos_changed, rules=rules
    )


def face_services(settings: Settings, asker: Asker | None) -> FaceServices:
    """What asks a person for permission may show dialogs, too."""
    return FaceServices(
        asker=asker or NoAsker(),
        dialogs=cast("Dialogs", asker) if hasattr(asker, "show") else None,
        is_verbose=settings.of(FaceSettings).verbose,
    )


def compaction_prompt(home: Path) -> str:
    """The user's own, else ours. Raises StoreUnreadable."""
    path = home / "prompts" / "compaction.md"
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return COMPACTION
    except OSError as error:
        raise read_error(path, error) from error
