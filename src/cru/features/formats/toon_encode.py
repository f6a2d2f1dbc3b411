"""TOON 3.0, written: JSON data as text with few tokens (github.com/toon-format/spec). Comma as delimiter, two blanks a level."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

INDENT = "  "
KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
NUMERIC = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_SPECIAL = re.compile(r'[:"\\\[\]{}\x00-\x1f,]')
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def encode(value: object) -> str:
    """The text of JSON data, without a newline at its end; an empty object is the empty text."""
    if isinstance(value, dict):
        return "\n".join(_fields(value, 0))
    if isinstance(value, (list, tuple)):
        return "\n".join(_array("", value, 0, 1))
    return scalar(value)


def scalar(value: Any) -> str:
    """A value that is neither object nor array."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return _number(value)
    return _quoted(value) if _needs_quotes(value) else str(value)


def _number(value: float) -> str:
    """Plain decimals, without an exponent and without zeros behind."""
    if isinstance(value, int):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        return "null"
    if value == int(value):
        return str(int(value))
    text = repr(value)
    if "e" in text:
        text = f"{Decimal(text):f}"
    return text


def _needs_quotes(text: str) -> bool:
    return (
        not text
        or text != text.strip()
        or text in ("true", "false", "null")
        or text.startswith("-")
        or NUMERIC.fullmatch(text) is not None
        or _SPECIAL.search(text) is not None
    )


def _quoted(text: str) -> str:
    return '"' + "".join(ESCAPES.get(char, char) for char in text) + '"'


def _key(key: object) -> str:
    text = str(key)
    return text if KEY.fullmatch(text) else _quoted(text)


def _fields(value: dict[object, object], depth: int) -> Iterator[str]:
    for key, inner in value.items():
        yield from _field(_key(key), inner, depth, depth + 1)


def _field(key: str, value: object, depth: int, inside: int) -> Iterator[str]:
    """One field at `depth`; what belongs to it stands at `inside`."""
    if isinstance(value, dict):
        yield f"{INDENT * depth}{key}:"
        yield from _fields(value, inside)
    elif isinstance(value, (list, tuple)):
        yield from _array(key, value, depth, inside)
    else:
        yield f"{INDENT * depth}{key}: {scalar(value)}"


def _array(key: str, value: Any, depth: int, inside: int) -> Iterator[str]:
    head = f"{INDENT * depth}{key}[{len(value)}]"
    if all(_plain(item) for item in value):
        yield f"{head}: {','.join(map(scalar, value))}" if value else f"{head}:"
        return
    columns = _columns(value)
    if columns:
        yield f"{head}{{{','.join(map(_key, columns))}}}:"
        for row in value:
            yield INDENT * inside + ",".join(scalar(row[column]) for column in columns)
        return
    yield f"{head}:"
    for item in value:
        yield from _item(item, inside)


def _item(value: object, depth: int) -> Iterator[str]:
    """One item of a list, behind a hyphen."""
    dash = f"{INDENT * depth}-"
    if isinstance(value, dict) and not value:
        yield dash
        return
    if isinstance(value, dict):
        (key, first), *rest = value.items()
        lines = _field(_key(key), first, depth + 1, depth + 2)
        yield f"{dash} {next(lines).lstrip(' ')}"
        yield from lines
        yield from _fields(dict(rest), depth + 1)
    elif isinstance(value, (list, tuple)):
        lines = _array("", value, 0, depth + 1)
        yield f"{dash} {next(lines)}"
        yield from lines
    else:
        yield f"{dash} {scalar(value)}"


def _plain(value: object) -> bool:
    return not isinstance(value, (dict, list, tuple))


def _columns(value: Any) -> list[Any]:
    """The fields of a table: every row an object with the same keys and plain values; [] if it is none."""
    first = value[0]
    if not isinstance(first, dict) or not first:
        return []
    same = all(isinstance(row, dict) and row.keys() == first.keys() and all(map(_plain, row.values())) for row in value)
    return list(first) if same else []
