"""One JSON object in a file, read and changed as a whole: atomic, locked against other processes, never lost when broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cru.core.api.host import NamespaceError, host
from cru.core.base.files import decode_json
from cru.core.base.files.atomic import replace_file
from cru.core.base.files.json_file import DamagedFile, load_json, update_json

T = TypeVar("T")


Rescue = Callable[[bytes], dict[str, Any]]
"""What of a damaged file must not be forgotten: it is written in its place."""


def load(path: Path, rescue: Rescue | None = None) -> dict[str, object]:
    """The object; {} if there is no file. A file that holds no object is kept beside as `NAME.corrupt-N`, with a warning.
    Raises NamespaceError if it cannot be read."""
    try:
        return load_json(path, lambda content: decode_json(content, dict[str, object])) or {}
    except DamagedFile as damaged:
        here = host()
        here.session.parts.bus.stream.warn(f"{path} is {damaged}", here.plugin.name)
        return _put_back(path, damaged, rescue) if rescue is not None else {}
    except OSError as error:
        raise NamespaceError(f"{path} cannot be read: {error.strerror or error}") from error


def update(path: Path, change: Callable[[dict[str, object]], T], rescue: Rescue | None = None) -> T:
    """Read, change, replace; gives what `change` gives. Raises NamespaceError if it cannot be written."""
    results: list[T] = []

    def apply() -> bytes | None:
        value = load(path, rescue)
        before = msgspec.json.encode(value)
        results.append(change(value))
        after = msgspec.json.encode(value)
        return after if after != before else None

    try:
        update_json(path, apply)
    except OSError as error:
        hint = (
            "check the folder's permissions"
            if isinstance(error, PermissionError)
            else "what was kept before is still there"
        )
        raise NamespaceError(f"{path} cannot be written: {error.strerror}", hint) from error
    return results[0]


def _put_back(path: Path, damaged: DamagedFile, rescue: Rescue) -> dict[str, object]:
    """What is rescued stands in the file's place from now on."""
    rescued = rescue(damaged.content)
    if rescued and damaged.is_kept:
        try:
            replace_file(path, msgspec.json.encode(rescued), keep_mode=False)
        except OSError as error:
            raise NamespaceError(f"{path} cannot be written: {error.strerror}", damaged.notice) from error
    return rescued
