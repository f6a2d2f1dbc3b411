"""A folder held open while files in it are replaced: what becomes of its path meanwhile changes nothing."""

from __future__ import annotations

import os
from contextlib import suppress

from cru.core.base.files.regular import WAY, open_folder


def open_without_links(path: str | os.PathLike[str], *, make: bool) -> int:
    """A descriptor of the folder at an absolute path of which no part may be a link (any more), for `dir_fd`. `make`: missing folders are
    made. Raises OSError."""
    *way, last = os.path.normpath(path).split("/")[1:] or [""]
    handle = os.open("/", WAY)
    try:
        for name in way:
            following = _step(name, handle, make)
            os.close(handle)
            handle = following
        if make:
            with suppress(FileExistsError):
                os.mkdir(last, dir_fd=handle)
        return open_folder(last or ".", os.O_NOFOLLOW, handle)
    finally:
        os.close(handle)


def _step(name: str, handle: int, make: bool) -> int:
    try:
        return os.open(name, WAY, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process was faster
        os.mkdir(name, dir_fd=handle)
    return os.open(name, WAY, dir_fd=handle)
