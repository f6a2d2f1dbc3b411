"""What is wrong with plugins, told without running any of them (`cru hooks check`): they guard as hooks do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.config.closest import closest, did_you_mean
from cru.extensions.discovery.files import DiscoveredPlugin
from cru.extensions.discovery.places import PluginFolders, project_plugins
from cru.extensions.errors import PluginFailed
from cru.extensions.hooks.report.lint import Finding
from cru.extensions.hooks.report.registrations import (
    check_options,
    find_head_problems,
    read_lua_registrations,
    read_python_registrations,
)
from cru.extensions.hooks.report.runnable import find_shebang_problems
from cru.extensions.patterns import describe, is_about_tools
from cru.extensions.requirements import required_names
from cru.files.regular import read_regular
from cru.namespace.event_table import table

if TYPE_CHECKING:
    from cru.extensions.lua.runtime import LuaVM


class PluginReport(Struct, frozen=True):
    """plugins, programs: how many there are that are to be loaded."""

    plugins: int
    programs: int
    findings: list[Finding]


def check_plugins(places: PluginFolders, tools: Sequence[str]) -> PluginReport:
    """Every plugin that is found. tools: names of tools that every session has."""
    plugins, problems = places.find()
    awaiting = project_plugins(places.home, places.root).problems
    findings = [Finding("broken", "", "plugins", text) for text in problems if text not in awaiting]
    by_name = {plugin.name: plugin for plugin in plugins}
    findings += _check_required(places.config, by_name)
    to_load = [plugin for plugin in plugins if plugin.enabled]
    checker = _PluginChecker(places, tuple(tools))
    for plugin in to_load:
        if not plugin.trusted:
            findings.append(
                Finding("waiting", plugin.name, str(plugin.files[0]), "awaits that you accept it", "cru trust")
            )
        else:
            findings += [
                Finding("broken", plugin.name, where, text, hint) for where, text, hint in checker.check(plugin)
            ]
    programs = sum(plugin.kind == "executable" for plugin in to_load)
    return PluginReport(len(to_load) - programs, programs, findings)


def _check_required(config: Mapping[str, object], plugins: Mapping[str, DiscoveredPlugin]) -> Iterator[Finding]:
    for name in required_names(config):
        plugin = plugins.get(name)
        if plugin is None:
            yield Finding(
                "broken", name, "plugins", "it is required, and there is no such plugin", did_you_mean(name, plugins)
            )
        elif not plugin.enabled:
            yield Finding(
                "broken",
                name,
                str(plugin.files[0]),
                "it is required, and switched off",
                f"[plugins.{name}] enabled = true",
            )
        elif not plugin.trusted:
            text = "it is required, and belongs to a project that is not trusted"
            yield Finding("broken", name, str(plugin.files[0]), text, "cru trust")


class _PluginChecker:
    def __init__(self, places: PluginFolders, tools: tuple[str, ...]) -> None:
        self._places = places
        self._env = dict(places.env)
        self._tools = tools
        self._machine: LuaVM | None = None

    def check(self, plugin: DiscoveredPlugin) -> Iterator[tuple[str, str, str]]:
        """(where, what is wrong, the next step)."""
        if plugin.problem:
            yield str(plugin.files[0]), plugin.problem, ""
            return
        for file in plugin.files:
            yield from self._check_file(plugin.kind, file)

    def _check_file(self, kind: str, file: Path) -> Iterator[tuple[str, str, str]]:
        try:
            if kind == "executable":
                for text, hint in (*find_head_problems(file), *find_shebang_problems(file.name, str(file), self._env)):
                    yield str(file), text, hint
                return
            source = read_regular(file)
            yield from self._check_lua(file, source) if kind == "lua" else self._check_python(file, source)
        except PluginFailed as error:
            yield str(file), error.message.removeprefix(f"{file}: "), error.hint
        except OSError as error:
            yield str(file), f"it cannot be read: {error.strerror or error}", ""
        except (UnicodeError, RecursionError, MemoryError) as error:
            yield str(file), f"it cannot be read: {type(error).__name__}", ""

    def _check_lua(self, file: Path, source: bytes) -> Iterator[tuple[str, str, str]]:
        from cru.extensions.lua.annotations import FENNEL, LUA, parse_annotations
        from cru.extensions.lua.convert import LuaError
        from cru.extensions.lua.fennel import SUFFIX, FennelCompiler, FennelPlace
        from cru.extensions.lua.runtime import LuaVM

        if self._machine is None:
            self._machine = LuaVM()
        is_fennel, code = file.suffix == SUFFIX, source
        if is_fennel:
            code = FennelCompiler(FennelPlace(self._places.fennel, self._places.home)).compile(source, file).encode()
        try:
            self._machine.load(code, f"@{file}")
        except LuaError as error:
            yield error.where or str(file), f"it is no Lua: {re.sub(r'^.*?:[0-9]+: ', '', error.message)}", error.hint
            return
        parsed = parse_annotations(source.decode(), FENNEL if is_fennel else LUA)
        for line, text, hint in (*parsed.problems, *parsed.unknown):
            yield f"{file}:{line}", text, hint
        for annotation in parsed.annotations:
            if annotation.kind == "handler":
                for text in self._check_handler(annotation.fields):
                    yield f"{file}:{annotation.line}", text, ""
        for line, fields in () if is_fennel else read_lua_registrations(source.decode()):
            for text in self._check_handler(fields):
                yield f"{file}:{line}", text, ""

    def _check_python(self, file: Path, source: bytes) -> Iterator[tuple[str, str, str]]:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            yield f"{file}{line}", f"it is no Python: {getattr(error, 'msg', '') or error}", ""
            return
        for number, fields in read_python_registrations(tree):
            for text in self._check_handler(fields):
                yield f"{file}:{number}", text, ""

    def _check_handler(self, fields: Mapping[str, str]) -> Iterator[str]:
        yield from check_options(fields)
        event = fields.get("event", "")
        near = closest(event, table.known_events())
        if event not in table.known_events() and near:
            yield f"`{event}` is no event of cru; did you mean `{near}`?"
        if any(is_about_tools(name) for name in table.alias_of(event).events):
            yield from describe(fields.get("pattern", ""), self._tools)
