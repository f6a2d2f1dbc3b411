"""JSON that anyone may have written: every mistake in it is one kind of error, and its depth is limited before it is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from cru.files.regular import read_regular

if TYPE_CHECKING:
    import os

T = TypeVar("T")

MAX_BYTES = 64 << 20
"""Bytes of a file that cru itself writes; none of them grows to a hundredth of that."""

MAX_DEPTH = 128
"""Levels. Whoever walks through a value calls itself once or twice for each, and Python allows a thousand calls."""


@overload
def decode_json(text: bytes | str) -> Any: ...


@overload
def decode_json(text: bytes | str, kind: type[T]) -> T: ...


def decode_json(text: bytes | str, kind: Any = object) -> Any:
    """Return the one value of a text, with `kind` as a value of this type. Raises msgspec.DecodeError, also for what is nested too deep and
    for bytes that are not UTF-8."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _is_too_deep(data):
        raise msgspec.DecodeError(f"nested more than {MAX_DEPTH} levels deep")
    try:
        return msgspec.json.decode(data, type=kind)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("not UTF-8") from error


@overload
def read_json(path: str | os.PathLike[str], *, limit_bytes: int = MAX_BYTES) -> Any: ...


@overload
def read_json(path: str | os.PathLike[str], kind: type[T], *, limit_bytes: int = MAX_BYTES) -> T: ...


def read_json(path: str | os.PathLike[str], kind: Any = object, *, limit_bytes: int = MAX_BYTES) -> Any:
    """Return the value in a file, as `decode_json` does. Raises msgspec.DecodeError, and OSError also for what is larger than `limit_bytes`
    or no regular file."""
    return decode_json(read_regular(path, limit_bytes), kind)


def _is_too_deep(data: bytes) -> bool:
    """Return whether more than MAX_DEPTH brackets are open at one place."""
    import re

    depth = 0
    for match in re.finditer(rb'"(?:[^"\\]|\\.)*+"?|[\[{]+|[\]}]+', data, re.DOTALL):
        token = match[0]
        if token[0] in b"[{":
            depth += len(token)
            if depth > MAX_DEPTH:
                return True
        elif token[0] in b"]}":
            depth -= len(token)
    return False
