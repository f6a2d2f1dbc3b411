"""What plugins register, read from their source without running it: calls with the name of an event as it is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cru.core.api.on import OPTIONS
from cru.core.base.config.closest import did_you_mean
from cru.core.hooks.launch.script_probe import WINDOW, is_binary

NAMES = ("on", "once")
LUA_CALL = re.compile(r"""\bcru\.(?:on|once)\(\s*(["'])([^"'\n]*)\1""")
LUA_OPTION = re.compile(r"""(?:^|[{,;\s])([A-Za-z_]\w*)\s*=(?!=)\s*(?:(["'])([^"'\n]*)\2)?""")
LUA_TOKEN = re.compile(
    r"""--\[(=*)\[.*?(?:\]\1\]|\Z)|--[^\n]*|\[(=*)\[.*?(?:\]\2\]|\Z)|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|[(){}]""",
    re.DOTALL,
)
"""What says how deep a place lies, and what hides that; what is not closed hides the rest."""


class Registration(NamedTuple):
    """A call that registers a handler, as it is written.

    line: 1-based
    fields: its event, and those options whose values are texts
    options: the names of all options
    """

    line: int
    fields: Mapping[str, str]
    options: tuple[str, ...] = ()


def read_lua_registrations(source: str) -> Iterator[Registration]:
    """Calls that do not stand in comments."""
    comments = [match.span() for match in LUA_TOKEN.finditer(source) if match[0].startswith("--")]
    for call in LUA_CALL.finditer(source):
        if any(start <= call.start() < end for start, end in comments):
            continue
        options = list(LUA_OPTION.finditer(_options_table(source, call.end())))
        texts = {match[1]: match[3] for match in options if match[2]}
        line = source.count("\n", 0, call.start()) + 1
        yield Registration(line, {"event": call[2], **texts}, tuple(match[1] for match in options))


def _options_table(source: str, start: int) -> str:
    """What stands in the table that is an argument of the call which is open at this place: directly behind the event, or at the end."""
    openings: list[int] = []
    table = ""
    first = re.compile(r"\s*,\s*").match(source, start)
    for token in LUA_TOKEN.finditer(source, start):
        if token[0] in ("(", "{"):
            openings.append(token.end())
        elif token[0] in (")", "}"):
            if not openings:
                return table
            opened = openings.pop()
            if token[0] == "}" and not openings:
                is_first = first is not None and first.end() == opened - 1
                is_last = re.compile(r"\s*\)").match(source, token.end()) and source[: opened - 1].rstrip().endswith(
                    ","
                )
                if is_first or is_last:
                    table = source[opened : token.start()]
    return table


def read_python_registrations(tree: ast.Module) -> Iterator[Registration]:
    """Calls of `on` and `once` of the namespace, by their own name or behind `cru.`."""
    own = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "cru"
        for alias in node.names
        if alias.name in NAMES
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_registration(node.func, own) and node.args:
            event = node.args[0]
            if isinstance(event, ast.Constant) and isinstance(event.value, str):
                options = dict(_options(node))
                texts = {
                    name: value.value
                    for name, value in options.items()
                    if isinstance(value, ast.Constant) and isinstance(value.value, str)
                }
                yield Registration(node.lineno, {"event": event.value, **texts}, tuple(options))


def _is_registration(function: ast.expr, own: set[str]) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in NAMES and isinstance(function.value, ast.Name) and function.value.id == "cru"
    return isinstance(function, ast.Name) and function.id in own


def _options(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Keywords, and the keys of a table."""
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
    for table in call.args[1:]:
        if isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value


def check_options(fields: Mapping[str, str], options: Iterable[str] = ()) -> Iterator[str]:
    """What is wrong with the options of a handler: names that there are not, and what a failure is to mean."""
    for name in options:
        if name not in OPTIONS:
            hint = did_you_mean(name, OPTIONS)
            yield f"unknown option `{name}`" + (f"; {hint}" if hint else "")
    chosen = fields.get("on_error", "")
    known = ("pass", "deny", "ask")
    if chosen and chosen not in known:
        hint = did_you_mean(chosen, known)
        yield f"`on_error` is one of {', '.join(known)}, not `{chosen}`" + (f"; {hint}" if hint else "")


def find_head_problems(file: Path) -> Iterator[tuple[str, str]]:
    """Why a program cannot be started by its file."""
    with open(file, "rb") as opened:
        head = opened.read(WINDOW)
    if not head.startswith(b"#!") and not is_binary(head):
        yield f"{file.name} has no first line that names its interpreter", "#!/usr/bin/env python3"
