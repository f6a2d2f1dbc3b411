"""What plugins register, read from their source without running it: calls with the name of an event as it is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cru.config.closest import did_you_mean
from cru.extensions.hooks.launch.script_probe import WINDOW, is_binary

NAMES = ("on", "once")
LUA_CALL = re.compile(r"""\bcru\.(?:on|once)\(\s*(["'])([^"'\n]*)\1""")
LUA_OPTION = re.compile(r"""\b(pattern|on_error)\s*=\s*(["'])([^"'\n]*)\2""")
Registration = tuple[int, Mapping[str, str]]
"""(the line, its event and options)."""


def read_lua_registrations(source: str) -> Iterator[Registration]:
    """Options are those that stand before the next registration and can be of no other table: directly behind the function's `end`."""
    code = re.sub(r"--(?!\[\[)[^\n]*", lambda match: " " * len(match[0]), source)
    calls = list(LUA_CALL.finditer(code))
    for number, call in enumerate(calls, 1):
        end = calls[number].start() if number < len(calls) else len(code)
        options = re.search(r"(?:\bend|\w)\s*,\s*\{([^{}\n]*(?:\{[^{}\n]*\}[^{}\n]*)*)\}\s*\)", code[call.end() : end])
        fields = {match[1]: match[3] for match in LUA_OPTION.finditer(options[1])} if options is not None else {}
        yield code.count("\n", 0, call.start()) + 1, {"event": call[2], **fields}


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
                yield node.lineno, {"event": event.value, **_text_options(node)}


def _is_registration(function: ast.expr, own: set[str]) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in NAMES and isinstance(function.value, ast.Name) and function.value.id == "cru"
    return isinstance(function, ast.Name) and function.id in own


def _text_options(call: ast.Call) -> dict[str, str]:
    return {
        option.arg: option.value.value
        for option in call.keywords
        if option.arg and isinstance(option.value, ast.Constant) and isinstance(option.value.value, str)
    }


def check_options(fields: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with what a failure of the handler means."""
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
