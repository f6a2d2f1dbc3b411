"""Plugins that are programs, in any language: their schemas are their registration, their tools and hooks are runs of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cru.core.api.host import Host, Plugin
from cru.core.base.files import is_inside
from cru.core.base.process.confined import ProjectProgram
from cru.core.conversations.entries import new_id
from cru.core.events.bus import Bus
from cru.core.events.payloads import InteractionCompleted, InteractionRequested
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.executables.calls import ProgramContext
from cru.core.plugins.executables.executable import (
    ERAS,
    HOOK_SECONDS,
    ON_ERROR,
    TOOL_SECONDS,
    Executable,
    ExecutableSettings,
)
from cru.core.plugins.executables.hooks.handler import register
from cru.core.plugins.executables.schemas import CachedSchema, SchemaCache, ask_schema
from cru.core.plugins.executables.tool import ExecutableTool
from cru.core.plugins.plugin_files import FileCopy
from cru.core.turn.parts import Parts

if TYPE_CHECKING:
    from cru.core.base.process.confined import Confine, PreparedCommand
    from cru.core.turn.ports import TerminalLender


class Executables:
    """The language of plugins that are programs. `all` gives every plugin there is: at a cold start the schemas of all that are not known
    yet are asked for at the same time."""

    def __init__(self, parts: Parts, home: Path, all: Callable[[], list[DiscoveredPlugin]]) -> None:
        self._parts = parts
        self._home = home
        self._all = all
        self._cache = SchemaCache(home)
        self._failed: dict[Path, PluginFailed] | None = None
        self._too_slow: set[Path] = set()

    def plugin(self, discovered: DiscoveredPlugin, config: Mapping[str, object]) -> Plugin:
        return Plugin(discovered.name, discovered.folder, "executable", config)

    async def load(self, discovered: DiscoveredPlugin, host: Host, _content: FileCopy) -> None:
        """Register its tools and its hooks. Raises PluginFailed."""
        executable = await self._executable(discovered, host.plugin.config)
        for text in executable.problems:
            host.problem(text)
        where = self._where(discovered)
        tools = host.session.parts.tools
        for schema in executable.tools:
            problem = tools.add(ExecutableTool(executable, schema, where))
            if problem:
                host.problem(problem)
        host.own(lambda: tools.drop_source(discovered.name), "tools")
        if any(schema.hooks for schema in executable.tools):
            register(host, executable, where)

    def _where(self, discovered: DiscoveredPlugin) -> ProgramContext:
        parts, name = self._parts, discovered.name
        env = parts.place.secrets.without(parts.place.env) if discovered.layer == "project" else parts.place.env
        face = parts.services.face.dialogs
        lender = cast("TerminalLender", face) if hasattr(face, "lend") else None
        return ProgramContext(
            _here(parts.place.root), parts.place.root, self._home, env, parts.store.name,
            lambda text: parts.bus.stream.warn(text, name),
            parts.services.face.is_verbose,
            (lambda group: _lend_terminal(parts.bus, name, lender, group)) if lender is not None else None,
            self._confinement(discovered),
        )  # fmt: skip

    def _confinement(self, discovered: DiscoveredPlugin) -> Confine | None:
        """What confines a program that the project brings, or that lies in it: there the model's commands can change it."""
        confine, places = self._parts.services.sandbox.confine_project, self._parts.gate.places
        path = str(_program(discovered))
        lies_in_project = is_inside(path, places.root) and not is_inside(path, places.home)
        if confine is None or not (discovered.layer == "project" or lies_in_project):
            return None

        async def run(argv: tuple[str, ...]) -> PreparedCommand | None:
            return await confine(
                ProjectProgram(argv, str(_here(self._parts.place.root)), readable=(str(discovered.folder),))
            )

        return run

    async def _executable(self, discovered: DiscoveredPlugin, config: Mapping[str, object]) -> Executable:
        """Raises PluginFailed."""
        path = _program(discovered)
        try:
            known = self._cache.of(path)
        except OSError as error:
            raise PluginFailed(f"{path} cannot be read: {error.strerror}") from error
        if known is None or (known.failure and path in self._too_slow):
            known = await self._ask(path, discovered)
        if known.failure:
            self._too_slow.add(path)
            raise PluginFailed(known.failure, "it is asked again when its file changes, and by `cru plugin list`")
        settings = ExecutableSettings(discovered.name, config)
        return Executable(
            discovered.name, path, settings.choice("era", ERAS, known.era), known.tools,
            settings.seconds("timeout", TOOL_SECONDS), settings.seconds("hook_timeout", HOOK_SECONDS),
            settings.choice("on_error", ON_ERROR, "pass"), (*known.problems, *settings.near_misses()),
        )  # fmt: skip

    async def _ask(self, path: Path, discovered: DiscoveredPlugin) -> CachedSchema:
        """Its schema, asked for anew. Raises PluginFailed."""
        if self._failed is None:  # the first one: ask them all
            plugins = [plugin for plugin in self._all() if plugin.kind == "executable" and plugin.loadable]
            others = {_program(plugin): plugin for plugin in plugins}
            answers = await self._ask_all({path: discovered} | {p: o for p, o in others.items() if self._unknown(p)})
        else:
            failed = self._failed.pop(path, None)
            answers = {path: failed} if failed is not None else await self._ask_all({path: discovered})
        known = answers[path]
        if isinstance(known, PluginFailed):
            raise known
        return known

    async def _ask_all(self, paths: Mapping[Path, DiscoveredPlugin]) -> dict[Path, CachedSchema | PluginFailed]:
        """At the same time, each in the name of its plugin; those of others that failed are kept until these are loaded."""
        answers: dict[Path, CachedSchema | PluginFailed] = {}

        async def ask(path: Path) -> None:
            try:
                answers[path] = await ask_schema(path, self._where(paths[path]))
            except PluginFailed as error:
                answers[path] = error

        async with asyncio.TaskGroup() as group:
            for path in paths:
                group.create_task(ask(path))
        self._cache.keep({path: known for path, known in answers.items() if isinstance(known, CachedSchema)})
        if self._failed is None:
            self._failed = {path: error for path, error in answers.items() if isinstance(error, PluginFailed)}
        return answers

    def _unknown(self, path: Path) -> bool:
        try:
            return self._cache.of(path) is None
        except OSError:
            return False  # gone; who loads it says so


@asynccontextmanager
async def _lend_terminal(bus: Bus, name: str, face: TerminalLender, group: int) -> AsyncIterator[None]:
    """The terminal for a process group, as a dialog like any other: the face is silent meanwhile."""
    dialog = new_id()
    await bus.dispatch(InteractionRequested(dialog, "terminal", name))
    try:
        async with face.lend(group):
            yield
    finally:
        await bus.dispatch(InteractionCompleted(dialog, "terminal", "answered"))


def _program(discovered: DiscoveredPlugin) -> Path:
    return Path(os.path.realpath(discovered.files[0]))


def _here(otherwise: Path) -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return otherwise
