"""The code of entries in Lua and Python: as text, and whether it can be used, told without running any of it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from cru.config.closest import did_you_mean
from cru.extensions.hooks.dialects.cru.config import is_lua_file
from cru.extensions.hooks.discovery import MAX_CONFIG_BYTES
from cru.extensions.hooks.model.entry import HookEntry
from cru.files.regular import read_regular

Trouble = tuple[str, str]
"""(what is wrong, the next step)."""


def lua(entry: HookEntry) -> tuple[str, str]:
    """(source of a chunk that returns the function, its name in messages). Raises OSError and UnicodeError if it is a file that cannot
    be read."""
    if is_lua_file(entry.command):
        return read_regular(Path(entry.command), MAX_CONFIG_BYTES).decode(), f"@{entry.command}"
    return f"return function(ctx, event) {entry.command}\nend", f"={entry.where}"


def broken(entry: HookEntry) -> Iterator[tuple[bool, str, str]]:
    """Why it cannot be used as it stands, and the next step; whether that is certain."""
    file = entry.command.rpartition(":")[0] if entry.kind == "python" else entry.command
    try:
        found = _python(entry, Path(file)) if entry.kind == "python" else _lua(entry)
        yield from ((True, *trouble) for trouble in found)
    except FileNotFoundError:
        yield True, f"there is no {file}", ""
    except (OSError, UnicodeError) as error:
        yield True, f"{file} cannot be read: {getattr(error, 'strerror', '') or error}", ""
    except (RecursionError, MemoryError):
        yield False, f"{file} cannot be checked: its code is nested too deeply", ""


def _lua(entry: HookEntry) -> Iterator[Trouble]:
    from cru.extensions.lua.convert import LuaError
    from cru.extensions.lua.runtime import LuaVM

    source, name = lua(entry)
    try:
        LuaVM().load(source.encode(), name)
    except LuaError as error:
        at = re.match(r".*?:(\d+): (.*)", error.message, re.DOTALL)
        what = os.path.basename(name[1:]) if name[0] == "@" else "its code"
        yield (f"{what} is no Lua, line {at[1]}: {at[2]}" if at else error.message), error.hint


def _python(entry: HookEntry, file: Path) -> Iterator[Trouble]:
    wanted = entry.command.rpartition(":")[2]
    try:
        tree = ast.parse(read_regular(file, MAX_CONFIG_BYTES))
    except (SyntaxError, ValueError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        yield f"{file.name} is no Python{place}: {getattr(error, 'msg', '') or error or type(error).__name__}", ""
        return
    made = set(_names(tree.body))
    if wanted not in made and "*" not in made:
        yield f"{file} has no function {wanted}", did_you_mean(wanted, sorted(made))


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """What a module's statements bind; "*" if that cannot be told."""
    rest: list[ast.AST] = [*body]
    while rest:
        one = rest.pop()
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield one.name
        elif isinstance(one, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in one.names)
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id
        else:
            rest.extend(ast.iter_child_nodes(one))
