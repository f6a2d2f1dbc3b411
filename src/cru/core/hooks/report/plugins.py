"""What is wrong with plugins, told without running any of them (`cru hooks check`): they guard as hooks do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cru.core.api.event_table import table
from cru.core.base.config.closest import closest
from cru.core.base.files.regular import read_regular
from cru.core.hooks.report.idle_plugins import find_idle_plugins
from cru.core.hooks.report.modules import find_missing_imports, find_missing_requires, offered_modules
from cru.core.hooks.report.plugin_tools import read_tool_names
from cru.core.hooks.report.registrations import (
    Registration,
    check_options,
    find_head_problems,
    read_lua_registrations,
    read_python_registrations,
)
from cru.core.hooks.report.runnable import find_shebang_problems
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.discovery.places import PluginFolders, project_plugins
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.lost_guards import LossKind, LostGuard
from cru.core.plugins.lua.annotations import FENNEL, LUA, parse_annotations
from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.fennel import SUFFIX, FennelCompiler, FennelPlace
from cru.core.plugins.lua.runtime import LuaVM
from cru.core.plugins.patterns import describe, is_about_tools
from cru.core.plugins.plugin_files import copy_of, describe_encoding
from cru.core.plugins.requirements import PLUGINS, find_unmet


class PluginReport(Struct, frozen=True):
    """plugins, programs: how many there are that are to be loaded. tools: the names of those that they seem to bring."""

    plugins: int
    programs: int
    lost: list[LostGuard]
    tools: list[str]


def check_plugins(places: PluginFolders, tools: Sequence[str]) -> PluginReport:
    """Every plugin that is found. tools: names of tools that every session has."""
    plugins, problems = places.find()
    project = project_plugins(places.home, places.root)
    awaiting = project.problems if project.untrusted else ()
    lost = [LostGuard(LossKind.LEFT_OUT, "", PLUGINS, text) for text in problems if text not in awaiting]
    lost += find_unmet(places.config, {plugin.name: plugin for plugin in plugins})
    to_load = [plugin for plugin in plugins if plugin.enabled]
    usable = [plugin for plugin in to_load if plugin.trusted and not plugin.problem]
    own_tools = read_tool_names(usable)
    checker = _PluginChecker(places, (*tools, *own_tools), usable)
    for plugin in to_load:
        if plugin.trusted:
            lost += checker.check(plugin)
        else:
            text = "awaits that you accept it"
            lost.append(LostGuard(LossKind.AWAITING, plugin.name, str(plugin.files[0]), text, "cru trust"))
    for plugin, text in find_idle_plugins(usable):
        lost.append(LostGuard(LossKind.POWERLESS, plugin.name, str(plugin.files[0]), text))
    programs = sum(plugin.kind == "executable" for plugin in to_load)
    return PluginReport(len(to_load) - programs, programs, lost, own_tools)


class _PluginChecker:
    """tools: the names of all that a session will have. plugins: those that are to be loaded."""

    def __init__(self, places: PluginFolders, tools: tuple[str, ...], plugins: Sequence[DiscoveredPlugin]) -> None:
        self._places = places
        self._env = dict(places.env)
        self._tools = tools
        self._machine: LuaVM | None = None
        self._folders = places.search()
        self._offered = frozenset(_modules_of(plugins))
        self._plugin = ""

    def check(self, plugin: DiscoveredPlugin) -> Iterator[LostGuard]:
        self._plugin = plugin.name
        if plugin.problem:
            yield LostGuard(LossKind.LEFT_OUT, plugin.name, str(plugin.files[0]), plugin.problem)
            return
        for file in plugin.files:
            yield from self._check_file(plugin, file)

    def _lost(self, file: Path, text: str, hint: str = "", line: int = 0) -> LostGuard:
        return LostGuard(LossKind.LEFT_OUT, self._plugin, str(file), text, hint, line)

    def _check_file(self, plugin: DiscoveredPlugin, file: Path) -> Iterator[LostGuard]:
        try:
            if plugin.kind == "executable":
                problems = (*find_head_problems(file), *find_shebang_problems(file.name, str(file), self._env))
                yield from (self._lost(file, text, hint) for text, hint in problems)
                return
            source = read_regular(file)
            yield from (
                self._check_lua(plugin, file, source) if plugin.kind == "lua" else self._check_python(file, source)
            )
        except PluginFailed as error:
            yield self._lost(file, error.message.removeprefix(f"{file}: "), error.hint)
        except UnicodeDecodeError as error:
            yield self._lost(file, describe_encoding(error))
        except OSError as error:
            yield self._lost(file, f"it cannot be read: {error.strerror or error}")
        except (UnicodeError, RecursionError, MemoryError) as error:
            yield self._lost(file, f"it cannot be read: {type(error).__name__}")

    def _check_lua(self, plugin: DiscoveredPlugin, file: Path, source: bytes) -> Iterator[LostGuard]:
        if self._machine is None:
            self._machine = LuaVM()
        is_fennel, code, text = file.suffix == SUFFIX, source, source.decode()
        if is_fennel:
            code = FennelCompiler(FennelPlace(self._places.fennel, self._places.home)).compile(source, file).encode()
        try:
            self._machine.load(code, f"@{file}")
        except LuaError as error:
            line = error.where.rpartition(":")[2]
            what = re.sub(r"^.*?:[0-9]+: ", "", error.message)
            yield self._lost(file, f"it is no Lua: {what}", error.hint, int(line) if line.isdigit() else 0)
            return
        parsed = parse_annotations(text, FENNEL if is_fennel else LUA)
        for number, problem, hint in (*parsed.problems, *parsed.unknown):
            yield self._lost(file, problem, hint, number)
        for annotation in parsed.annotations:
            if annotation.kind == "handler":
                yield from self._check_handler(file, Registration(annotation.line, annotation.fields))
        if is_fennel:
            return
        for registration in read_lua_registrations(text):
            yield from self._check_handler(file, registration)
        folders = (str(plugin.folder / "lua"), *self._folders)
        for number, problem in find_missing_requires(text, folders, self._offered):
            yield self._lost(file, problem, line=number)

    def _check_python(self, file: Path, source: bytes) -> Iterator[LostGuard]:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            line = error.lineno if isinstance(error, SyntaxError) and error.lineno else 0
            yield self._lost(file, f"it is no Python: {getattr(error, 'msg', '') or error}", line=line)
            return
        for registration in read_python_registrations(tree):
            yield from self._check_handler(file, registration)
        for number, problem in find_missing_imports(tree, file):
            yield self._lost(file, problem, line=number)

    def _check_handler(self, file: Path, registration: Registration) -> Iterator[LostGuard]:
        for text in self._handler_problems(registration):
            yield self._lost(file, text, line=registration.line)

    def _handler_problems(self, registration: Registration) -> Iterator[str]:
        fields = registration.fields
        yield from check_options(fields, registration.options)
        event = fields.get("event", "")
        near = closest(event, table.known_events())
        if event not in table.known_events() and near:
            yield f"`{event}` is no event of cru; did you mean `{near}`?"
        if any(is_about_tools(name) for name in table.alias_of(event).events):
            yield from describe(fields.get("pattern", ""), self._tools)


def _modules_of(plugins: Sequence[DiscoveredPlugin]) -> Iterator[str]:
    """The names by which plugins in Lua find each other, and what they put there themselves."""
    for plugin in plugins:
        if plugin.kind == "lua":
            yield plugin.name
            for file, content in copy_of(plugin).items():
                yield file.stem
                yield from offered_modules(content.decode("utf-8", "replace"))
