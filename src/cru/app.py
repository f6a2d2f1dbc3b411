"""The composition root: builds a session out of the parts, and fills every port."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from cru.bundled.prompts import BASE, COMPACTION, GUIDES
from cru.config.layers import Layer, environment_layer, read_layer, restrict
from cru.config.merge import Settings, merge
from cru.contexts.entries import Problem, new_id
from cru.contexts.home import Home
from cru.contexts.lines import LineFile, redactor
from cru.contexts.settings import ContextSettings
from cru.contexts.store import FileContext
from cru.engine.commands import Command, Commands
from cru.engine.history import History
from cru.engine.mail import sender
from cru.engine.parts import Parts
from cru.engine.prompt import Places, sections
from cru.engine.recorder import Recorder
from cru.engine.session import Session
from cru.engine.settings import EngineSettings
from cru.engine.settling import recurse
from cru.engine.voices import Voices
from cru.events.bus import Bus
from cru.events.journal import JournalLine
from cru.events.payloads import TodoChanged
from cru.events.stamp import Origin
from cru.extensions.hooks.door import Door, Policy, Where
from cru.extensions.hooks.settings import HookOptions, HookSettings, chosen
from cru.extensions.packages import installed
from cru.extensions.settings import PATH_VARIABLES, PLUGIN_KEYS, PluginSettings
from cru.models.settings import API_KEYS, ModelSettings
from cru.permissions.asker import Asker, Nobody
from cru.permissions.gate import Gate
from cru.permissions.grants import Grants
from cru.permissions.settings import PermissionSettings, layer_rules
from cru.tools.builtin import BuiltIn
from cru.tools.protocol import ToolSource
from cru.tools.registry import Registry as Tools
from cru.tools.settings import ToolSettings
from cru.values.errors import CruError

if TYPE_CHECKING:
    from cru.events.extension import Extension

Redact = Callable[[bytes], bytes] | None

SETTINGS: tuple[type[Struct], ...] = (
    ContextSettings, ModelSettings, PermissionSettings, EngineSettings, ToolSettings, PluginSettings, HookSettings,
)  # fmt: skip
API_TABLES: dict[str, dict[str, Any]] = {"api": API_KEYS, "models.*.api": API_KEYS, "plugins": PLUGIN_KEYS}

# Extensions of every session of this process, beside those that a caller of `build` gives.
INSTALLED: list[Extension] = []


class BadExtension(CruError):
    """Code that was to be registered raised."""


class Start(Struct, frozen=True):
    """What a face knows when it asks for a session. `overrides` are settings of the command line; root is the project root; hooks:
    which command hooks run; strict_hooks: none may await trust; verbose: plugins that are programs are told so."""

    home: Path
    context: str
    env: Mapping[str, str]
    cwd: Path
    root: Path
    overrides: dict[str, Any] = {}
    hooks: Policy = "trusted"
    strict_hooks: bool = False
    verbose: bool = False


class Built(Struct):
    """A session ready to run, and what a face may want to look at."""

    session: Session
    settings: Settings
    home: Home
    store: FileContext
    close: Callable[[], Any]
    extensions: Any = None


def load_settings(start: Start) -> tuple[Settings, list[Layer], list[str]]:
    """All layers in order; a project's file that is not trusted may only add ask and deny rules."""
    notices: list[str] = []
    layers = [read_layer("user", start.home / "config.toml"), _models_layer(start.home), environment_layer(start.env)]
    layers.append(_project_layer(start, notices))
    layers += [
        read_layer("context", start.home / "contexts" / start.context / "local.toml"),
        Layer("command line", dict(start.overrides)),
    ]
    given = [layer for layer in layers if layer is not None]
    settings = merge(SETTINGS, given, tables=API_TABLES)
    return settings, given, notices + [str(p) for p in settings.problems]


def _project_layer(start: Start, notices: list[str]) -> Layer | None:
    """The project's own file, restricted until it is trusted; None if it is the user's own (the home folder as project)."""
    path = start.root / ".cru" / "config.toml"
    if path.parent == start.home or os.path.realpath(path.parent) == os.path.realpath(start.home):
        return None
    if not os.path.realpath(path).startswith(os.path.realpath(start.root) + os.sep):
        notices.append(f"{path} leads out of the project and is ignored")
        return None
    project = read_layer("project", path)
    if project is None:
        return None
    from cru.permissions.trust import Trust

    trust = Trust(start.home / "trust.json")
    if not trust.is_trusted(path, project.text):
        project, problems = restrict(project)
        notices += [str(p) for p in (*trust.problems, *problems)]
    return project


def _models_layer(home: Path) -> Layer | None:
    """chibi's models.toml (`[models."id"] context_window = N`); it adds to config.toml and wins over it."""
    return read_layer("user", home / "models.toml")


def build(
    start: Start,
    *,
    extensions: Iterable[Extension] = (),
    sources: Iterable[ToolSource] = (),
    asker: Asker | None = None,
    command: str = "cru",
    watch: Callable[[Bus], None] | None = None,
) -> Built:
    """Build a session. `watch` may subscribe to the stream before anything is published on it. Raises CruError."""
    settings, layers, notices = load_settings(start)
    about = settings.of(ContextSettings)
    home = Home(start.home, about)
    problems = home.prepare()
    store = home.open(start.context)
    bus = _bus(store, watch)
    for text in (*(_placed(start.home, p) for p in problems), *notices):
        bus.stream.warn(text)
    redact = _keys(settings, start.env)
    journal, trace = _records(bus, store, redact)
    tools = Tools([_built_in(settings), *sources])
    voices = Voices(bus, settings.of(ModelSettings), start.env, start.home / "models")
    gate, odd = _gate(start, settings, layers, store, tools)
    places = Places(start.home, start.root, start.cwd, _user_home(start), BASE)
    parts = Parts(
        bus=bus, store=store, choose=voices.choose, tools=tools, gate=gate, asker=asker or Nobody(),
        recorder=Recorder(trace, store.folder, redact),
        settings=settings.of(EngineSettings), tool_settings=settings.of(ToolSettings), root=start.root,
        env=_children_env(start), history=History(),
        services=_services(bus, home, store, voices, settings) | _leave(gate, asker) | {"verbose": start.verbose},
        username=about.username, sections=lambda: sections(store, places, about.username, about.reflection_enabled),
        compaction_prompt=_compaction_prompt(start.home),
    )  # fmt: skip
    _register(bus, (*INSTALLED, *extensions))
    plugins = _plugins(parts, start, settings)
    parts.opening.append(_bind)
    _hooks(parts, start, chosen(settings.of(HookSettings).options, layers), redact)
    for text in (*bus.registry.problems, *tools.problems, *odd):
        bus.stream.warn(text)
    session = _session(parts, command, voices)
    return Built(session, settings, home, store, _closing(voices, store, journal, trace), plugins)


def _bus(store: FileContext, watch: Callable[[Bus], None] | None) -> Bus:
    bus = Bus(Origin(store.session_id, new_id()[:8]))
    if watch is not None:
        watch(bus)
    return bus


def _records(bus: Bus, store: FileContext, redact: Redact) -> tuple[LineFile, LineFile]:
    """The journal, which the bus writes, and the trace."""
    journal = LineFile(store.folder / "journal.jsonl", redact=redact)
    bus.sink = _Journal(journal)
    return journal, LineFile(store.folder / "trace.jsonl", limit_bytes=None, redact=redact)


def _closing(voices: Voices, *files: FileContext | LineFile) -> Callable[[], Any]:
    """What ends a session's hold on connections and files."""

    async def close() -> None:
        await voices.close()
        for file in files:
            file.close()

    return close


def _plugins(parts: Parts, start: Start, settings: Settings) -> Any:
    """All plugins, if there may be any; they are loaded when the session opens."""
    chosen = settings.of(PluginSettings)
    said = chosen.plugins or chosen.runtimepath or any(start.env.get(name) for name in PATH_VARIABLES)
    folders = (start.home / "plugins", start.root / ".cru" / "plugins")
    if not (said or any(os.path.isdir(folder) for folder in folders) or installed(start.home)):
        return None
    from cru.extensions.manager import Extensions

    extensions = Extensions(plugin_places(start, settings), chosen.plugins, start.home)
    parts.opening.append(extensions.open)
    parts.closing.append(extensions.close)
    parts.services["plugins"] = extensions
    return extensions


async def _bind(parts: Parts) -> None:
    """A workflow that is saved as running binds the model, even if no plugin could be loaded that defines it."""
    try:
        saved = (parts.store.folder / "plugin-state.json").read_bytes()
    except FileNotFoundError:
        return
    except OSError:
        saved = b'"fsm:'  # nobody knows
    if b'"fsm:' in saved:
        from cru.namespace.fsm.workflows import bind

        bind(parts)


def plugin_places(start: Start, settings: Settings) -> Any:
    """Where plugins are looked for (cru.extensions.places.Places)."""
    from cru.extensions.places import Places

    chosen = settings.of(PluginSettings)
    return Places(start.home, start.root, start.env, chosen.runtimepath, chosen.plugins)


def _hooks(parts: Parts, start: Start, options: HookOptions, redact: Redact) -> None:
    """Command hooks; nothing of them is loaded before a file is there that may hold some. Raises Untrusted."""
    if start.hooks == "none":
        return
    door = Door(hooks_where(start), options, start.hooks, start.strict_hooks, parts, redact)
    door.look()
    parts.between.append(door.again)


def hooks_where(start: Start) -> Where:
    """Where command hooks are looked for."""
    return Where(start.home, _user_home(start), start.root, start.cwd, start.env)


def _session(parts: Parts, command: str, voices: Voices) -> Session:
    """A session with the built-in commands; they are loaded when the first command is typed. The service `face` gives the face that
    the user sits at (cru.commands.desk.Face)."""
    session = Session(parts, command)

    def commands() -> Iterable[Command]:
        from cru.commands.builtin import built_in
        from cru.commands.desk import Desk, NoFace

        return built_in(Desk(session, voices, parts.services.get("face", NoFace)()))

    parts.commands = Commands(commands)
    return session


def _register(bus: Bus, extensions: Iterable[Extension]) -> None:
    """The built-in handlers first, then everybody's, in order. Raises BadExtension."""
    bus.registry.on("turn:complete", recurse, owner="cru", where="recurse", priority=0)
    for extension in extensions:
        try:
            extension.register(bus)
        except (Exception, SystemExit) as error:  # the boundary around other people's code: told as what it is
            raise BadExtension(f"{extension.owner} cannot be registered: {type(error).__name__}: {error}") from error


def _placed(home: Path, problem: Problem) -> str:
    """A problem of a file of the home folder; line 0 means the file as a whole."""
    line = f":{problem.line}" if problem.line else ""
    return f"{home / problem.file}{line}: {problem.message}"


def _built_in(settings: Settings) -> BuiltIn:
    about = settings.of(ContextSettings)
    return BuiltIn(
        settings.of(ToolSettings),
        reflection=about.reflection_enabled,
        reflection_limit=about.reflection_character_limit,
    )


def _user_home(start: Start) -> Path:
    return Path(start.env.get("HOME", "/"))


def _gate(
    start: Start, settings: Settings, layers: list[Layer], store: FileContext, tools: Tools
) -> tuple[Gate, list[str]]:
    """The gate, and what is odd about rules and grants: names of no tool, an unreadable file."""
    grants = Grants(start.home / "grants.json", start.root)
    rules = layer_rules(layers)
    chosen = settings.of(PermissionSettings)
    readable = (store.folder / "tool_cache", Path(GUIDES))
    gate = Gate(chosen, rules, start.root, start.home, grants, readable=readable, user_home=_user_home(start))
    problems = [str(p) for p in grants.problems]
    if gate.rules():
        from cru.permissions.rules import unknown_tools

        problems += [str(p) for p in unknown_tools(gate.rules(), tools.names())]
    return gate, problems


def _leave(gate: Gate, asker: Asker | None) -> dict[str, Any]:
    """What tools ask while they run: whether a redirect, or a file that a search met, is denied by a rule. Whoever asks a person for
    leave may `show` dialogs, too."""

    def may_fetch(url: str) -> str:
        verdict = gate.judge("fetch", "fetch", url)
        return verdict.why if verdict.decision == "deny" else ""

    def may_read(path: str) -> bool:
        return gate.judge("read", "read", path, [("read", path)]).decision != "deny"

    dialogs = {"dialogs": asker} if hasattr(asker, "show") else {}
    return {**dialogs, "may_fetch": may_fetch, "may_read": may_read} if gate.rules() else dialogs


class _Journal:
    """The journal's sink: one line a dispatch, in the context's folder."""

    def __init__(self, lines: LineFile) -> None:
        self._lines = lines
        self._encode = msgspec.json.Encoder(enc_hook=repr).encode

    def write(self, line: JournalLine) -> None:
        self._lines.write(self._encode(line) + b"\n")


def _services(bus: Bus, home: Home, store: FileContext, voices: Voices, settings: Settings) -> dict[str, Any]:
    async def fetch(url: str, **limits: Any) -> Any:
        return await voices.transport().get(url, {}, **limits)

    async def todos_changed() -> None:
        await bus.dispatch(TodoChanged(store.name, store.read_text("todos.md")))

    return {
        "store": store, "home": home, "send": sender(bus, home, store.name), "fetch": fetch, "todos_changed": todos_changed,
        "settings": settings, "transport": voices.transport,
    }  # fmt: skip


def _keys(settings: Settings, env: Mapping[str, str]) -> Redact:
    """What takes the keys out of records; None if there are none. `env` has them: code that runs in this process need not see them."""
    from cru.models.registry import KEY_VARIABLES, secrets

    for name in set(KEY_VARIABLES).difference(settings.of(HookSettings).options.env_pass):
        os.environ.pop(name, None)
    known = secrets(settings.of(ModelSettings), env)
    return redactor(known) if known else None


def _children_env(start: Start) -> dict[str, str]:
    """The environment of tools: everything but the keys of providers; where cru is, in our own names."""
    from cru.models.registry import KEY_VARIABLES

    env = {key: value for key, value in start.env.items() if key not in KEY_VARIABLES}
    return {**env, "CRU_CONTEXT": start.context, "CRU_HOME": str(start.home), "CRU_PROJECT_ROOT": str(start.root)}


def _compaction_prompt(home: Path) -> str:
    try:
        return (home / "prompts" / "compaction.md").read_text("utf-8", "replace")
    except FileNotFoundError:
        return COMPACTION


def project_root(cwd: Path, env: Mapping[str, str], home: Path, given: str | None = None) -> Path:
    """The project root: as given, else CRU_PROJECT_ROOT, else the nearest folder above under version control, else the nearest one with
    a folder .cru (a project's, not a home of cru; nor in the user's home or above it), else here. `home`: cru's, of this run."""
    named = given or env.get("CRU_PROJECT_ROOT")
    if named:
        return Path(os.path.realpath(cwd / os.path.expanduser(named)))
    here = Path(os.path.realpath(cwd))
    folders = (here, *here.parents)
    for folder in folders:
        if any(os.path.exists(folder / mark) for mark in (".git", ".hg", ".jj")):
            return folder
    user = Path(os.path.realpath(env.get("HOME") or "/"))
    homes = (os.path.realpath(home), os.path.realpath(user / ".cru"))
    for folder in folders:
        if folder == user or folder in user.parents:
            break
        if os.path.isdir(folder / ".cru") and os.path.realpath(folder / ".cru") not in homes:
            return folder
    return here
