"""One JSON object in a file, read and changed as a whole: atomic, locked against other processes, never lost when broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cru.namespace.host import NamespaceError, host

T = TypeVar("T")


Rescue = Callable[[bytes], dict[str, Any]]
"""What of a damaged file must not be forgotten: it is written in its place."""


def load(path: Path, rescue: Rescue | None = None) -> dict[str, object]:
    """The object; {} if there is no file. A file that holds no object is kept beside as `NAME.corrupt-N`, with a warning.
    Raises NamespaceError if it cannot be read."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NamespaceError(f"{path} cannot be read: {error.strerror}") from error
    try:
        content = msgspec.json.decode(raw)
        if not isinstance(content, dict):
            raise msgspec.DecodeError("not an object")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return _set_aside(path, str(error), rescue(raw) if rescue is not None else {})
    return content


def update(path: Path, change: Callable[[dict[str, object]], T], rescue: Rescue | None = None) -> T:
    """Read, change, replace; gives what `change` gives. Raises NamespaceError if it cannot be written."""
    from cru.files.atomic import file_lock, replace_file

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock(path):
            value = load(path, rescue)
            before = msgspec.json.encode(value)
            result = change(value)
            after = msgspec.json.encode(value)
            if after != before:
                replace_file(path, after, keep_mode=False)
    except OSError as error:
        hint = (
            "check the folder's permissions"
            if isinstance(error, PermissionError)
            else "what was kept before is still there"
        )
        raise NamespaceError(f"{path} cannot be written: {error.strerror}", hint) from error
    return result


def _set_aside(path: Path, why: str, rescued: dict[str, object]) -> dict[str, object]:
    """Out of the way with it; what is rescued stands in its place from now on."""
    from cru.files.atomic import replace_file, set_aside

    here = host()
    try:
        notice = f"kept as {set_aside(path, 'corrupt')}"
        if rescued:
            replace_file(path, msgspec.json.encode(rescued), keep_mode=False)
    except OSError as error:
        notice = f"cannot be kept aside: {error.strerror}"
    here.session.parts.bus.stream.warn(f"{path} is not understood: {why}; {notice}", here.plugin.name)
    return rescued
