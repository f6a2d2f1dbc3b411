"""Opening regular files and nothing else: a pipe or a device in a file's place must not make anybody wait or read for ever."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import EEXIST, EFBIG, EISDIR

PRIVATE = 0o600
FOLDER = 0o700
NOT_REGULAR = "it is not a regular file"
# Nothing that cru appends to by itself may lie elsewhere: whoever can make a link in the folder must not choose what is written to.
APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices that never keep anybody waiting."""


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
"""Opens a folder on the way, which need not be readable; systems without O_PATH want it to be."""


def open_folder(path: str | os.PathLike[str], flags: int, handle: int | None) -> int:
    """A descriptor of a folder: readable if it may be, so that it can be listed and synced; one may also be writable only. `handle`: of the
    folder that the path starts from. Raises OSError."""
    try:
        return os.open(path, _FOLDER | flags, dir_fd=handle)
    except PermissionError:
        return os.open(path, WAY & ~os.O_NOFOLLOW | flags, dir_fd=handle)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = PRIVATE) -> int:
    """A file descriptor, as of os.open. Raises OSError, also for what is there but is no regular file."""
    fd = os.open(path, flags | os.O_NONBLOCK, mode)
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return fd
    os.close(fd)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), os.fspath(path))
    raise OSError(NOT_REGULAR)


def read_regular(path: str | os.PathLike[str], limit_bytes: int = 0) -> bytes:
    """The whole content of a file. Raises OSError, also for what is there but is no regular file or has more than `limit_bytes`
    (0 = any number)."""
    with open(open_regular(path), "rb", buffering=0) as file:
        if limit_bytes and os.fstat(file.fileno()).st_size > limit_bytes:
            raise OSError(EFBIG, f"it is larger than {limit_bytes >> 20} MiB", os.fspath(path))
        return file.readall()


def make_private_folder(path: str | os.PathLike[str]) -> None:
    """A folder and those above it that are missing, for nobody but the user, whatever the umask lets through. What is there stays
    as it is. Raises OSError."""
    missing = []
    place = os.path.abspath(path)
    while not os.path.lexists(place):
        missing.append(place)
        place = os.path.dirname(place)
    for folder in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(folder, FOLDER)
    if not os.path.isdir(path):
        raise FileExistsError(EEXIST, os.strerror(EEXIST), os.fspath(path))


def read_range(fd: int, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`; fewer if the file is shorter."""
    parts = []
    while start < end and (part := os.pread(fd, min(end - start, 1 << 24), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write everything, as a rule with one call. A short write is followed by another one, whose error tells the cause."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def append_lines(path: str | os.PathLike[str], data: bytes, *, sync: bool = False) -> None:
    """Append whole lines; they start on a fresh line even if the file ends in a torn one. Raises OSError, for a link, too.

    sync: they survive a power cut, and after an error nothing of them is there; for a file that nobody else writes to meanwhile
    """
    fd = open_regular(path, APPENDING)
    try:
        if sync:
            _append_synced(fd, data)
        else:
            write_all(fd, missing_newline(fd) + data)
    finally:
        os.close(fd)


def _append_synced(fd: int, data: bytes) -> None:
    size = os.fstat(fd).st_size
    try:
        write_all(fd, missing_newline(fd) + data)
        os.fsync(fd)
    except OSError:
        with suppress(OSError):  # the first error says more
            os.ftruncate(fd, size)
        raise


def missing_newline(fd: int) -> bytes:
    """What must be written first so that the next write starts a line: a newline after a torn line, else nothing."""
    size = os.fstat(fd).st_size
    return b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b""


def blocking_reason(path: str | bytes) -> str:
    """Why opening what is there, or reading it, may take for ever; "" if it does not. What cannot be looked at is left to the open."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    kind = status.st_mode
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        return ""
    if stat.S_ISCHR(kind) and any(
        os.path.exists(name) and os.stat(name).st_rdev == status.st_rdev for name in HARMLESS_DEVICES
    ):
        return ""
    return f"it is a {'pipe' if stat.S_ISFIFO(kind) else 'device'}, and waiting for it might never end (a program may: `cat`)"
