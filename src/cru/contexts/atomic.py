"""Writing files so that a kill or a power cut leaves the old text or the new one, and nothing in between."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from cru.config.regular import open_regular

PRIVATE = 0o600
# Nothing that cru appends to by itself may lie elsewhere: whoever can make a link in the folder must not choose what is written to.
APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


def write_all(fd: int, data: bytes) -> None:
    """Write everything, as a rule with one call. A short write is followed by another one, whose error tells the cause."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def read_range(fd: int, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`; fewer if the file is shorter."""
    parts = []
    while start < end and (part := os.pread(fd, min(end - start, 1 << 24), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, *, follow: bool = True) -> None:
    """Give a file new content; a link is followed, or refused. Raises OSError, and then the old content is still there."""
    if follow:
        path = path.resolve()
    elif path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    temporary = _temporary(path, data, sync=True)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def create_file(path: Path, data: bytes, *, sync: bool) -> bool:
    """Make a file appear with its whole content; False if somebody else was first. `sync`: survive a power cut too."""
    temporary = _temporary(path, data, sync=sync)
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        temporary.rename(path)  # two at once are not told apart here, but what appears is whole
    finally:
        temporary.unlink(missing_ok=True)
    if sync:
        sync_folder(path.parent)
    return True


def append_lines(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Append whole lines; they start on a fresh line even if the file ends in a torn one. Raises OSError, for a link, too."""
    fd = open_regular(path, APPENDING, PRIVATE)
    try:
        write_all(fd, fresh_line(fd) + data)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def fresh_line(fd: int) -> bytes:
    """What must be written first so that the next write starts a line: nothing, or a newline after a torn line."""
    size = os.fstat(fd).st_size
    return b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b""


def set_aside(path: Path, suffix: str) -> Path:
    """Rename a file to `<name>.<suffix>-<n>` with the first free n; returns the new path."""
    number = 1
    while (target := path.with_name(f"{path.name}.{suffix}-{number}")).exists():
        number += 1
    return path.rename(target)


def _temporary(path: Path, data: bytes, *, sync: bool) -> Path:
    from cru.config.atomic import sweep  # only who replaces a file pays for it

    sweep(os.fspath(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        write_all(fd, data)
        if sync:
            os.fsync(fd)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return temporary
