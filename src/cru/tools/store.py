"""Replacing a file's content: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from cru.tools.paths import failed
from cru.tools.protocol import ToolError


def encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the content holds half a surrogate pair, which no file can hold as UTF-8") from error


def store(path: Path, text: str, data: bytes) -> bool:
    """Write `data` to `path` (resolved; `text` is what the model called it); True if the file is new.

    Makes missing folders, keeps mode and owner of an existing file. Raises ToolError; the file is then unchanged, unless it
    could only be written in place.
    """
    try:
        old = _replaceable(path, text)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _replace(path, data, old)
        except OSError as error:
            if old is None or error.errno not in _IN_PLACE:
                raise
            path.write_bytes(data)
    except OSError as error:
        raise failed("write", text, error) from error
    return old is None


# a folder that takes no new file, a file mounted on its own, an owner that cannot be kept: writable, but only in place
_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV)


def _replaceable(path: Path, text: str) -> os.stat_result | None:
    """The status of the existing file, None if there is none."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise ToolError(f"`{text}` is a folder")
    if not stat.S_ISREG(old.st_mode):
        raise ToolError(f"`{text}` is not a regular file")
    if not os.access(path, os.W_OK):  # the rename would not ask
        raise ToolError(f"cannot write `{text}`: it is read-only")
    return old


def _replace(path: Path, data: bytes, old: os.stat_result | None) -> None:
    new = path.parent / f".{os.urandom(6).hex()}.tmp"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(fd, "wb") as file:
            if old is not None:
                own = os.fstat(fd)
                if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid):
                    os.fchown(fd, old.st_uid, old.st_gid)
                os.fchmod(fd, stat.S_IMODE(old.st_mode))
            file.write(data)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
