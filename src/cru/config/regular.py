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


HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices that never keep anybody waiting."""


def may_block(path: str | bytes) -> str:
    """Why opening what is there, or reading it, may take for ever; "" if it does not. What cannot be looked at is left to the open."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    kind = found.st_mode
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        return ""
    if stat.S_ISCHR(kind) and any(os.path.exists(name) and os.stat(name).st_rdev == found.st_rdev for name in HARMLESS):
        return ""
    return f"it is a {'pipe' if stat.S_ISFIFO(kind) else 'device'}, and waiting for it might never end (a program may: `cat`)"


def read_regular(path: str | os.PathLike[str], most: int = 0) -> bytes:
    """The whole content of a file. Raises OSError, also for what is there but is no regular file or has more than `most` bytes
    (0 = any number)."""
    with open(open_regular(path), "rb", buffering=0) as file:
        if most and os.fstat(file.fileno()).st_size > most:
            from errno import EFBIG

            raise OSError(EFBIG, f"it is larger than {most >> 20} MiB", os.fspath(path))
        return file.readall()
