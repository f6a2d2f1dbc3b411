"""TOML that anyone may have written: every mistake in it is one kind of error, and its size, depth and count are limited before it is
parsed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

MAX_DEPTH = 64
"""Levels that brackets and dotted keys may open. tomllib needs memory for the square of a key's length, and recurses for brackets."""
MAX_VALUES = 20_000
"""Commas, ends of lines and dots outside of strings: no fewer than the values."""
TABLE_COST = 10
"""Values that a bracket counts for, because a table costs its readers more than a value."""


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


def parse_toml(text: str, *, most_values: int = MAX_VALUES) -> dict[str, Any]:
    """Return the tables of a text. Raises BadToml, also for more than `most_values` values."""
    text = text.removeprefix("\ufeff")
    problem = _exceeded_limit(text, most_values)
    if problem:
        raise BadToml(problem)
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        words = place.rstrip(")").replace(",", "").split()
        if words[:1] == ["line"]:
            raise BadToml(f"not TOML: {message}", int(words[1]), int(words[3])) from error
        raise BadToml(f"not TOML: {message}", text.rstrip().count("\n") + 1) from error  # "at end of document"
    except ValueError as error:  # a number of thousands of digits, which Python refuses to convert
        raise BadToml(f"not TOML: {str(error).partition(';')[0]}") from error


def _exceeded_limit(text: str, most_values: int) -> str:
    """Return which limit a text exceeds, "" for none."""
    opened = text.count("[") + text.count("{")
    values = text.count(",") + text.count("\n")
    if opened + text.count(".") <= MAX_DEPTH and values + TABLE_COST * MAX_DEPTH <= most_values:
        return ""  # the usual case: a few counts in C, and no expression is compiled
    return _scan(text, most_values)


def _scan(text: str, most_values: int) -> str:
    """Count what stands outside of strings and comments. Up to its first mistake a text is split here as tomllib splits it, and what stands
    behind the mistake is never parsed."""
    around: list[int] = []  # the dots before each open bracket
    values = dots = depth = 0
    for match in _token().finditer(text):
        token = match[0]
        if token in "[{":
            around.append(dots)
            depth += 1 + dots
            values, dots = values + TABLE_COST, 0
        elif token in "]}":
            if not around:
                return ""  # tomllib says where it is wrong
            dots = around.pop()
            depth -= 1 + dots
        elif token == ".":
            values, dots = values + 1, dots + 1
        elif token in ",\n":
            values, dots = values + 1, 0
        if depth + dots > MAX_DEPTH:
            return f"nested more than {MAX_DEPTH} levels deep"
        if values > most_values:
            return f"it holds more than {most_values:,} values (a table or list counts as {TABLE_COST})"
    return ""


@cache
def _token() -> re.Pattern[str]:
    """Return the expression for strings, comments, and the characters that count. What nothing closes goes on to the end."""
    return re.compile(
        r'"""(?:[^"\\]|\\.|"(?!""))*+"{0,5}'
        r"|'''(?:[^']|'(?!''))*+'{0,5}"
        r'|"(?:[^"\\\n]|\\.)*+"?'
        r"|'[^'\n]*+'?"
        r"|#[^\n]*+"
        r"|[\[\]{}.,\n]",
        re.DOTALL,
    )
