"""Files that only the user may read, whatever the umask lets through. Folders of this kind: `make_private_folder`."""

from __future__ import annotations

import os

from cru.core.base.files.regular import PRIVATE, open_regular, write_all


def write_private(path: str | os.PathLike[str], data: bytes, mode: int = PRIVATE) -> None:
    """Write a file that only the user may read, whatever the umask lets through; one that exists keeps its mode. Raises OSError, also for a
    link."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=private_opener)`: a new one is the user's alone."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE)
