"""JSON data as extensions give it: encoded strictly, since what is not data must not become data by accident."""

from __future__ import annotations

import msgspec

from cru.core.api.host import BadArgument

_PLAIN = (str, int, float, bool, type(None))
DEPTH = 100


def encode(where: str, value: object, *, sort: bool = False) -> bytes:
    """The value as JSON. Raises BadArgument for functions, NaN, cycles (more than 100 levels) and text that is not Unicode."""
    check(where, value)
    try:
        return msgspec.json.encode(value, order="sorted" if sort else None)
    except (msgspec.MsgspecError, UnicodeError, TypeError, ValueError) as error:
        raise BadArgument(f"{where}: not JSON data: {error}") from error


def check(where: str, value: object, depth: int = 0) -> None:
    """That a value is plain data. Raises BadArgument."""
    if depth > DEPTH:
        raise BadArgument(f"{where}: more than {DEPTH} levels deep, or a table that holds itself")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, (str, int)):
                raise BadArgument(f"{where}: a key of a table must be a string, got {key!r}")
            check(where, inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            check(where, inner, depth + 1)
    elif not isinstance(value, _PLAIN):
        what = "a function" if callable(value) else f"a {type(value).__name__}"
        raise BadArgument(f"{where}: {what} is not data")
    elif isinstance(value, float) and not -1e400 < value < 1e400:
        raise BadArgument(f"{where}: {value} cannot be written as JSON")


def decode(where: str, text: str | bytes) -> object:
    """The value of a JSON text. Raises BadArgument."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadArgument(f"{where}: not JSON: {error}") from error
