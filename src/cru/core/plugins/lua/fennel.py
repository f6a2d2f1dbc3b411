"""Fennel: code that a `fennel.lua` of the user turns into Lua, which is then loaded like any other."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cru.core.base.files.regular import read_regular
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.lua.annotations import FENNEL, parse_annotations
from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.runtime import LuaFunction, LuaVM

SUFFIX = ".fnl"
FILE = "fennel.lua"
SHARED = tuple(Path(prefix, "share", "lua", version) for version in ("5.4", "5.3") for prefix in ("/usr/local", "/usr"))
"""Where packages of systems put modules of Lua."""
MEMORY_MB = 256
RUN_SECONDS = 5.0
"""Run time for the compiler to start, and for each file."""
PLAIN_NAME = re.compile(r"[^\s.:()\[\]{}\"';`,~@]+")


class FennelPlace(Struct, frozen=True):
    """Where the compiler is looked for.

    named: the setting `[lua] fennel`, "" if it has none
    home: cru's home folder
    """

    named: str
    home: Path

    def find(self) -> Path:
        """The file. Raises PluginFailed with what to do."""
        if self.named:
            path = Path(os.path.expanduser(self.named))
            if path.is_file():
                return path
            raise PluginFailed(f"[lua] fennel: there is no file {path}", "name a fennel.lua (https://fennel-lang.org)")
        for folder in (self.home, *SHARED):
            if (folder / FILE).is_file():
                return folder / FILE
        raise PluginFailed(
            "it is written in Fennel, and there is no fennel.lua",
            f'put one (https://fennel-lang.org) into {self.home}, or name it: [lua] fennel = "PATH"',
        )


class FennelCompiler:
    """The compiler, started with the first file, for one plugin only: what its macros do reaches no other."""

    def __init__(self, place: FennelPlace) -> None:
        self._place = place
        self._machine: tuple[LuaVM, LuaFunction] | None = None

    def compile(self, code: bytes, file: Path) -> str:
        """The code in Lua, with its lines; functions with an annotation can be found by name. Raises PluginFailed with the place."""
        try:
            source = export_annotated(code.decode())
            self._machine = self._machine or self._start()
            is_compiled, text = _call(*self._machine, source, str(file))
        except PluginFailed as error:
            raise PluginFailed(f"{file}: {error.message}", error.hint) from error
        except LuaError as error:
            raise PluginFailed(f"{file}: it cannot be compiled: {error.reason}") from error
        if is_compiled:
            return str(text)
        problem = str(text).strip().partition("\n")[0]
        raise PluginFailed(problem if problem.startswith(str(file)) else f"{file}: {problem}")

    def helpers(self, folder: Path, content: Mapping[Path, bytes]) -> Iterator[tuple[str, str, Path]]:
        """The modules in Fennel of a plugin's folder `lua/`: name, code in Lua, file."""
        fennel = [file for file in content if file.suffix == SUFFIX]
        for name, file in module_names(folder / "lua", fennel) if fennel else ():
            yield name, self.compile(content[file], file), file

    def _start(self) -> tuple[LuaVM, LuaFunction]:
        path = self._place.find()
        try:
            source = read_regular(path)
            vm = LuaVM(memory_mb=MEMORY_MB, run_seconds=RUN_SECONDS)
            prepare = vm.load(Path(__file__).with_suffix(".lua").read_bytes(), "=[cru fennel]", vm.own_globals())
            (function,) = _call(vm, prepare, source, str(path))
        except OSError as error:
            raise PluginFailed(f"{path} cannot be read: {error.strerror or error}") from error
        except LuaError as error:
            hint = "get a fennel.lua from https://fennel-lang.org"
            raise PluginFailed(f"{path} is no compiler of Fennel: {error.reason}", hint) from error
        return vm, function


def _call(vm: LuaVM, function: LuaFunction, *args: object) -> tuple[Any, ...]:
    """Nothing in the compiler waits."""
    outcome = vm.start(function, *args)
    assert isinstance(outcome, tuple)
    return outcome


def module_names(folder: Path, files: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Those of the files that `require` finds in this folder, by their names."""
    for file in files:
        if file.suffix == SUFFIX and file.is_relative_to(folder):
            parts = file.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if len(parts) > 1 and parts[-1] == "init" else parts
            yield ".".join(parts), file


def export_annotated(source: str) -> str:
    """`fn` makes a local function: behind those that an annotation stands above, on the same line, the global is set as well."""
    names = {
        item.function for item in parse_annotations(source, FENNEL).annotations if PLAIN_NAME.fullmatch(item.function)
    }
    if not names:
        return source
    insertions: list[tuple[int, str]] = []
    lines = source.splitlines(keepends=True)
    start = 0
    for line in lines:
        match = FENNEL.functions[0].match(line)
        if match is not None and line.startswith("(") and match[2] in names:
            insertions.append((end_of_form(source, start), f" (tset _G :{match[2]} {match[2]})"))
        start += len(line)
    for position, text in reversed(insertions):
        source = source[:position] + text + source[position:]
    return source


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|;[^\n]*|[()]', re.DOTALL)


def end_of_form(source: str, start: int) -> int:
    """Where the list that begins there ends; the end of the source if it is never closed."""
    depth = 0
    for token in TOKEN.finditer(source, start):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0 and token[0] == ")":
            return token.end()
    return len(source)
