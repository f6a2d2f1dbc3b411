"""JSON with the lines at which its values stand: a person is told where an entry is."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

Path: TypeAlias = "tuple[str | int, ...]"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def without_comments(text: str) -> str:
    """JSON with comments as plain JSON; every line stays where it is."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    return _COMMENT.sub(blank, text)


def lines(text: str) -> dict[Path, int]:
    """The 1-based line of every value of valid JSON, by its path of keys and indices."""
    found: dict[Path, int] = {}
    stack: list[list[Any]] = []  # [is a table, key or index, whether a key is awaited]
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        token = match[0]
        if token == ",":
            top = stack[-1]
            top[1], top[2] = (None, True) if top[0] else (top[1] + 1, False)
        elif token in "}]":
            stack.pop()
        elif stack and stack[-1][2]:
            stack[-1][1], stack[-1][2] = msgspec.json.decode(token), False
        elif token != ":":
            found[tuple(level[1] for level in stack)] = line
            if token in "{[":
                stack.append([True, None, True] if token == "{" else [False, 0, False])
    return found


def line_of_error(text: str, error: Exception) -> int:
    """The line that msgspec's message points at by its byte offset; 0 if it names none."""
    match = re.search(r"byte (\d+)", str(error))
    return text.encode()[: int(match[1])].count(b"\n") + 1 if match else 0
