"""How deep and how large JSON and TOML are, found out without parsing them, and what is wrong with TOML."""

from __future__ import annotations

import re

_JSON = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]++|[\]}]++', re.DOTALL)
_TOML = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{0,5}'
    r"|'''(?:[^']|'(?!''))*+'{0,5}"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+"
    r"|[\[\]{}.,\n]",
    re.DOTALL,
)
"""Strings, comments, and the characters that count. A string that nothing closes goes on to the end."""


class BadToml(ValueError):
    """A text that is not TOML, or more of it than cru reads.

    problem: what is wrong, without the place
    line, column: from 1, 0 if they are not known
    """

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
        self.column = column

    def place_in(self, path: object) -> str:
        """Return `path:line:column` with what is known of it."""
        return ":".join([str(path), *(str(number) for number in (self.line, self.column) if number)])


def is_too_deep(data: bytes, max_depth: int) -> bool:
    """Return whether more than so many brackets of JSON are open at one place."""
    depth = 0
    for match in _JSON.finditer(data):
        token = match[0]
        if token[0] in b"[{":
            depth += len(token)
            if depth > max_depth:
                return True
        elif token[0] in b"]}":
            depth -= len(token)
    return False


def check_toml(text: str, max_depth: int, most_values: int, table_cost: int) -> None:
    """Raises BadToml for a text that exceeds a limit.

    Up to its first mistake the text is split here as tomllib splits it, and what stands behind that is never parsed.
    """
    around: list[int] = []  # the dots before each open bracket
    values = dots = depth = 0
    for match in _TOML.finditer(text):
        token = match[0]
        if token in "[{":
            around.append(dots)
            depth += 1 + dots
            values, dots = values + table_cost, 0
        elif token in "]}":
            if not around:
                return  # tomllib says where it is wrong
            dots = around.pop()
            depth -= 1 + dots
        elif token == ".":
            values, dots = values + 1, dots + 1
        elif token in ",\n":
            values, dots = values + 1, 0
        if depth + dots > max_depth:
            raise BadToml(f"nested more than {max_depth} levels deep")
        if values > most_values:
            raise BadToml(f"it holds more than {most_values:,} values (a table or list counts as {table_cost})")


def describe_error(error: ValueError, text: str) -> BadToml:
    """Return what tomllib raised for a text, with its place."""
    message, _, place = str(error).rpartition(" (at ")
    words = place.rstrip(")").replace(",", "").split()
    if words[:1] == ["line"]:
        return BadToml(f"not TOML: {message}", int(words[1]), int(words[3]))
    if place == "end of document)":
        return BadToml(f"not TOML: {message}", text.rstrip().count("\n") + 1)
    return BadToml(f"not TOML: {str(error).partition(';')[0]}")  # a number that is too long for Python has no place
