"""The code of entries in Lua and Python: as text, and whether it can be used, told without running any of it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from cru.config.closest import did_you_mean
from cru.config.regular import read_regular
from cru.extensions.hooks.dialects.native_config import is_lua_file
from cru.extensions.hooks.door import MOST
from cru.extensions.hooks.entry import Entry

Trouble = tuple[str, str]
"""(what is wrong, the next step)."""


def lua(entry: Entry) -> tuple[str, str]:
    """(source of a chunk that returns the function, its name in messages). Raises OSError and UnicodeError if it is a file that cannot
    be read."""
    if is_lua_file(entry.command):
        return read_regular(Path(entry.command), MOST).decode(), f"@{entry.command}"
    return f"return function(ctx, event) {entry.command}\nend", f"={entry.where}"


def broken(entry: Entry) -> Iterator[Trouble]:
    """Why it cannot be used as it stands."""
    file = entry.command.rpartition(":")[0] if entry.kind == "python" else entry.command
    try:
        yield from _python(entry, Path(file)) if entry.kind == "python" else _lua(entry)
    except FileNotFoundError:
        yield f"there is no {file}", ""
    except (OSError, UnicodeError) as error:
        yield f"{file} cannot be read: {getattr(error, 'strerror', '') or error}", ""


def _lua(entry: Entry) -> Iterator[Trouble]:
    from cru.extensions.lua.convert import LuaError
    from cru.extensions.lua.runtime import LuaVM

    source, name = lua(entry)
    try:
        LuaVM().load(source.encode(), name)
    except LuaError as error:
        at = re.match(r".*?:(\d+): (.*)", error.message, re.DOTALL)
        what = os.path.basename(name[1:]) if name[0] == "@" else "its code"
        yield (f"{what} is no Lua, line {at[1]}: {at[2]}" if at else error.message), error.hint


def _python(entry: Entry, file: Path) -> Iterator[Trouble]:
    wanted = entry.command.rpartition(":")[2]
    try:
        tree = ast.parse(read_regular(file, MOST))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        yield f"{file.name} is no Python{place}: {getattr(error, 'msg', '') or error or type(error).__name__}", ""
        return
    made = set(_names(tree.body))
    if wanted not in made and "*" not in made:
        yield f"{file} has no function {wanted}", did_you_mean(wanted, sorted(made))


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """What a module's statements bind; "*" if that cannot be told."""
    for one in body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield one.name
        elif isinstance(one, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in one.names)
        else:
            yield from (
                node.id for node in ast.walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            )
            for part in ("body", "orelse", "finalbody", "handlers"):
                for inner in getattr(one, part, ()):
                    yield from _names(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])
