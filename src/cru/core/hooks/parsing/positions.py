"""JSON with the lines at which its values stand: a person is told where an entry is."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field

Path: TypeAlias = "tuple[str | int, ...]"

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
"""A text, to the end of the file if nothing closes it: nothing is read twice, whatever somebody wrote."""
_TOKEN = re.compile(_STRING + r'|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
DEPTH = 8
"""Values that lie deeper have the line of what is around them."""


def without_comments(text: str) -> str:
    """JSON with comments, and with commas behind last values, as plain JSON; everything stays where it is."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    return _LAST_COMMA.sub(lambda match: match[1] or " ", _COMMENT.sub(blank, text))


class JsonPositions(Struct):
    """The 1-based line of every value by its path of keys and indices; of a key that stands more than once, the last, and its second in
    `twice`."""

    lines: dict[Path, int] = field(default_factory=dict)
    twice: dict[Path, int] = field(default_factory=dict)


def locate_values(text: str) -> JsonPositions:
    """Where the values of valid JSON stand."""
    positions = JsonPositions()
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
            if len(stack) <= DEPTH:
                _note(positions, tuple(level[1] for level in stack), line)
            if token in "{[":
                stack.append([True, None, True] if token == "{" else [False, 0, False])
    return positions


def _note(positions: JsonPositions, path: Path, line: int) -> None:
    if path in positions.lines and not any(path[:depth] in positions.twice for depth in range(1, len(path) + 1)):
        positions.twice[path] = line
    positions.lines[path] = line


def line_of_error(text: str, error: Exception) -> int:
    """The line that msgspec's message points at by its byte offset; 0 if it names none."""
    match = re.search(r"byte (\d+)", str(error))
    return text.encode()[: int(match[1])].count(b"\n") + 1 if match else 0
