"""A folder held open while files in it are replaced: what becomes of its path meanwhile changes nothing."""

from __future__ import annotations

import os
from contextlib import suppress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A folder on the way need not be readable; systems without O_PATH want it to be.
_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


def open_folder(path: str | os.PathLike[str]) -> int:
    """A descriptor of the folder, for `dir_fd`. Raises OSError."""
    return _open(path, 0, None)


def open_without_links(path: str | os.PathLike[str], *, make: bool) -> int:
    """A descriptor of the folder at an absolute path of which no part may be a link (any more), for `dir_fd`. `make`: missing folders are
    made. Raises OSError."""
    *way, last = os.path.normpath(path).split("/")[1:] or [""]
    handle = os.open("/", _WAY)
    try:
        for name in way:
            following = _step(name, handle, make)
            os.close(handle)
            handle = following
        if make:
            with suppress(FileExistsError):
                os.mkdir(last, dir_fd=handle)
        return _open(last or ".", os.O_NOFOLLOW, handle)
    finally:
        os.close(handle)


def _step(name: str, handle: int, make: bool) -> int:
    try:
        return os.open(name, _WAY, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process was faster
        os.mkdir(name, dir_fd=handle)
    return os.open(name, _WAY, dir_fd=handle)


def _open(path: str | os.PathLike[str], flags: int, handle: int | None) -> int:
    """Readable if it may be, so that it can be listed and synced; a folder may also be writable only."""
    try:
        return os.open(path, _FOLDER | flags, dir_fd=handle)
    except PermissionError:
        return os.open(path, _WAY & ~os.O_NOFOLLOW | flags, dir_fd=handle)
