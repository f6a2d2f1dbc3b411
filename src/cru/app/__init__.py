"""The composition root: builds a session out of the parts, and fills every port."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.app import ports
from cru.app.start import (
    SETTINGS,
    FaceSettings,
    Start,
    hooks_where,
    load_settings,
    parent,
    plugin_places,
    project_root,
    user_home,
)
from cru.app.wiring import BadExtension, add_hooks, add_plugins, bind, register, session_of
from cru.bundled.prompts import BASE
from cru.config.merge import Settings
from cru.contexts.entries import LogProblem
from cru.contexts.home import Home
from cru.contexts.settings import ContextSettings
from cru.contexts.store import FileContext
from cru.engine.history import History
from cru.engine.model_pool import ModelPool
from cru.engine.parts import Parts
from cru.engine.prompt import PromptSources, sections
from cru.engine.session import Session
from cru.engine.settings import EngineSettings
from cru.events.bus import Bus
from cru.extensions.hooks.settings import HookSettings, merge_options
from cru.models.settings import ModelSettings
from cru.permissions.asker import Asker, Nobody
from cru.tools.protocol import ToolSource
from cru.tools.registry import ToolRegistry as Tools
from cru.tools.settings import ToolSettings

if TYPE_CHECKING:
    from cru.events.extension import Extension

# Extensions of every session of this process, beside those that a caller of `build` gives.
INSTALLED: list[Extension] = []


class Built(Struct):
    """A session ready to run, and what a face may want to look at."""

    session: Session
    settings: Settings
    home: Home
    store: FileContext
    close: Callable[[], Any]
    extensions: Any = None


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
    about, above = settings.of(ContextSettings), parent(start, settings.of(EngineSettings).max_nested_runs)
    home = Home(start.home, about)
    problems = home.prepare()
    store = home.open(start.context)
    bus = ports.bus(store, watch)
    _warn(bus, (*(_placed(start.home, p) for p in problems), *notices))
    redact = ports.take_keys(settings, start.env)
    journal, trace = ports.records(bus, store, redact)
    tools = Tools([ports.built_in(settings), *sources])
    voices = ModelPool(bus, settings.of(ModelSettings), start.env, start.home / "models")
    gate, odd = ports.build_gate(start, settings, layers, store)
    places = PromptSources(start.home, start.root, start.cwd, user_home(start), BASE)
    parts = Parts(
        bus=bus, store=store, choose=voices.choose, tools=tools, gate=gate, asker=asker or Nobody(),
        recorder=ports.recorder(trace, store.folder, redact, start.debug),
        settings=settings.of(EngineSettings), tool_settings=settings.of(ToolSettings), root=start.root,
        env=ports.children_env(start), history=History(),
        services=ports.services(bus, home, store, voices, settings) | ports.leave(gate, asker),
        username=about.username, parent=above, sections=lambda: sections(store, places, about.username, about.reflection_enabled),
        compaction_prompt=ports.compaction_prompt(start.home),
    )  # fmt: skip
    register(bus, (*INSTALLED, *extensions))
    plugins = add_plugins(parts, start, settings)
    parts.opening += [bind, ports.check_rules]
    ports.tidy_at_the_end(parts, settings.of(ToolSettings))
    add_hooks(parts, start, merge_options(settings.of(HookSettings).options, layers), redact)
    _warn(bus, (*bus.registry.problems, *tools.problems, *odd))
    store.attend(command)
    close = ports.closing(voices, store, journal, trace)
    return Built(session_of(parts, command, voices), settings, home, store, close, plugins)


def _warn(bus: Bus, texts: Iterable[str]) -> None:
    for text in texts:
        bus.stream.warn(text)


def _placed(home: Path, problem: LogProblem) -> str:
    """A problem of a file of the home folder; line 0 means the file as a whole."""
    line = f":{problem.line}" if problem.line else ""
    return f"{home / problem.file}{line}: {problem.message}"


__all__ = [
    "INSTALLED", "SETTINGS", "BadExtension", "Built", "FaceSettings", "Start", "build", "hooks_where", "load_settings", "plugin_places",
    "project_root",
]  # fmt: skip
