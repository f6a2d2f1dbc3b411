"""Small JSON files of ours, read and changed as a whole: locked against other processes, replaced atomically, never lost when damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cru.core.base.files import MAX_BYTES
from cru.core.base.files.atomic import file_lock, replace_file, set_aside
from cru.core.base.files.regular import make_private_folder, read_regular

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


class DamagedFile(Exception):
    """A file could not be understood, and is out of the way if it could be moved.

    reason: why it was not understood
    notice: where it is kept, or why it could not be moved
    is_kept: whether it could be moved
    content: what was in it
    """

    def __init__(self, reason: str, notice: str, is_kept: bool, content: bytes) -> None:
        super().__init__(f"not understood: {reason}; {notice}")
        self.reason = reason
        self.notice = notice
        self.is_kept = is_kept
        self.content = content


def load_json(path: Path, decode: Callable[[bytes], T]) -> T | None:
    """What `decode` makes of the file, None if there is none. Raises OSError, and DamagedFile if `decode` does not understand it; it is
    then kept beside, as `NAME.corrupt-N`."""
    try:
        content = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    try:
        return decode(content)
    except msgspec.DecodeError as error:
        raise _set_aside(path, str(error), content) from error


def _set_aside(path: Path, reason: str, content: bytes) -> DamagedFile:
    try:
        return DamagedFile(reason, f"kept as {set_aside(path, 'corrupt')}", True, content)
    except OSError as error:
        return DamagedFile(reason, f"cannot be kept aside: {error.strerror}", False, content)


def update_json(path: Path, change: Callable[[], bytes | None]) -> None:
    """Replace the file by what `change` makes of it under the lock, None for no change. Raises OSError."""
    make_private_folder(path.parent)
    with file_lock(path):
        content = change()
        if content is not None:
            replace_file(path, content, keep_mode=False)
