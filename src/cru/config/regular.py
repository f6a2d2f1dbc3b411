"""Opening regular files and nothing else: a pipe or a device in a file's place must not make anybody wait or read for ever."""

from __future__ import annotations

import os
import stat


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """A file descriptor, as of os.open. Raises OSError, also for what is there but is no regular file."""
    fd = os.open(path, flags | os.O_NONBLOCK, mode)
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return fd
    os.close(fd)
    if stat.S_ISDIR(kind):
        from errno import EISDIR

        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), os.fspath(path))
    raise OSError("it is not a regular file")


def read_regular(path: str | os.PathLike[str], most: int = 0) -> bytes:
    """The whole content of a file. Raises OSError, also for what is there but is no regular file or has more than `most` bytes
    (0 = any number)."""
    with open(open_regular(path), "rb", buffering=0) as file:
        if most and os.fstat(file.fileno()).st_size > most:
            from errno import EFBIG

            raise OSError(EFBIG, f"it is larger than {most >> 20} MiB", os.fspath(path))
        return file.readall()
