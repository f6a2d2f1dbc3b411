"""Whether the code of an entry in Lua or Python can be used, told without running any of it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from cru.core.base.config.closest import did_you_mean
from cru.core.base.files.regular import read_regular
from cru.core.hooks import MAX_CONFIG_BYTES
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.run.languages import lua_source
from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.runtime import LuaVM

CodeProblem = tuple[str, str]
"""(what is wrong, the next step)."""


def find_code_problems(entry: HookEntry) -> Iterator[tuple[bool, str, str]]:
    """Why it cannot be used as it stands, and the next step; whether that is certain."""
    file = entry.command.rpartition(":")[0] if entry.kind == "python" else entry.command
    try:
        problems = _python_problems(entry, Path(file)) if entry.kind == "python" else _lua_problems(entry)
        yield from ((True, *problem) for problem in problems)
    except FileNotFoundError:
        yield True, f"there is no {file}", ""
    except (OSError, UnicodeError) as error:
        yield True, f"{file} cannot be read: {getattr(error, 'strerror', '') or error}", ""
    except (RecursionError, MemoryError):
        yield False, f"{file} cannot be checked: its code is nested too deeply", ""


def _lua_problems(entry: HookEntry) -> Iterator[CodeProblem]:
    source, name = lua_source(entry)
    try:
        LuaVM().load(source.encode(), name)
    except LuaError as error:
        match = re.match(r".*?:(\d+): (.*)", error.message, re.DOTALL)
        subject = os.path.basename(name[1:]) if name[0] == "@" else "its code"
        yield (f"{subject} is no Lua, line {match[1]}: {match[2]}" if match else error.message), error.hint


def _python_problems(entry: HookEntry, file: Path) -> Iterator[CodeProblem]:
    name = entry.command.rpartition(":")[2]
    try:
        tree = ast.parse(read_regular(file, MAX_CONFIG_BYTES))
    except (SyntaxError, ValueError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        yield f"{file.name} is no Python{place}: {getattr(error, 'msg', '') or error or type(error).__name__}", ""
        return
    names = set(_bound_names(tree.body))
    if name not in names and "*" not in names:
        yield f"{file} has no function {name}", did_you_mean(name, sorted(names))


def _bound_names(body: list[ast.stmt]) -> Iterator[str]:
    """What a module's statements bind; "*" if that cannot be told."""
    rest: list[ast.AST] = [*body]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        else:
            rest.extend(ast.iter_child_nodes(node))
