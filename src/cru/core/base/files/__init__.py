"""Files and patterns of file names: the lowest room that touches the disk. Here, since each start loads it: how JSON and
TOML are read, within limits of size, depth and count."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import os

T = TypeVar("T")

unsynced: set[str] = set()
"""Absolute paths of what cru wrote and a power cut may still lose; the last part of a path must be no link. `atomic.sync_files` makes all
of it durable before the log says that it was written."""

MAX_BYTES = 64 << 20
"""Bytes of a file that cru itself writes; none of them grows to a hundredth of that."""
MAX_DEPTH = 128
"""Levels of JSON. Whoever walks through a value calls itself a few times for each, and Python allows a thousand calls. Values of plugins
may have a hundred."""
MAX_TOML_DEPTH = 64
"""The same of TOML: tomllib needs memory for the square of the length of a dotted key."""
MAX_VALUES = 20_000
"""Commas, ends of lines and dots in TOML outside of strings: no fewer than its values."""
TABLE_COST = 10
"""Values that a bracket in TOML counts for, because a table costs its readers more than a value."""


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is that folder, which may be `/`, or lies in it; by their names, without a look at the disk."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def decode_json(text: bytes | str, kind: type[T]) -> T:
    """Return the one value of a text, with `kind` as a value of this type. Raises msgspec.DecodeError, also for what is nested too deep and
    for bytes that are not UTF-8."""
    import msgspec

    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:  # a few counts in C spare most texts the scan
        from cru.core.base.files.nesting import is_too_deep

        if is_too_deep(data, MAX_DEPTH):
            raise msgspec.DecodeError(f"nested more than {MAX_DEPTH} levels deep")
    try:
        return msgspec.json.decode(data, type=kind)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("not UTF-8") from error


def read_json(path: str | os.PathLike[str], kind: type[T], *, limit_bytes: int = MAX_BYTES) -> T:
    """Return the value in a file, as `decode_json` does. Raises msgspec.DecodeError, and OSError also for what is larger than `limit_bytes`
    or no regular file."""
    from cru.core.base.files.regular import read_regular

    return decode_json(read_regular(path, limit_bytes), kind)


def parse_toml(text: str, *, most_values: int = MAX_VALUES) -> dict[str, Any]:
    """Return the tables of a text. Raises BadToml (a ValueError, of nesting.py), also for more than `most_values` values."""
    import tomllib

    text = text.removeprefix("\ufeff")
    levels = text.count("[") + text.count("{") + text.count(".")
    if levels > MAX_TOML_DEPTH or text.count(",") + text.count("\n") + TABLE_COST * levels > most_values:
        from cru.core.base.files.nesting import check_toml

        check_toml(text, MAX_TOML_DEPTH, most_values, TABLE_COST)
    try:
        return tomllib.loads(text)
    except ValueError as error:
        from cru.core.base.files.nesting import describe_error

        raise describe_error(error, text) from error


def login_home() -> str:
    """Return the home folder that the system has for the user, regardless of HOME; "/" for a user whom the system does not know."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir or "/"
    except KeyError:
        return "/"
