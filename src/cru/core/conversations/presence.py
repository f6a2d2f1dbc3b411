"""Who has a context open without working on it: a chat that waits for its person, a run above the one that works.

A seat is a shared `flock` on the file `.seat` in the context's folder, released by the kernel however its holder dies. Any number of
processes may sit; it keeps nobody from working there, only from removing the context.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from cru.core.base.files import read_json
from cru.core.base.files.regular import PRIVATE, open_regular
from cru.core.conversations import ContextHeld
from cru.core.conversations.entries import format_time
from cru.core.conversations.lock import NO_FLOCK, LockOwner, close_locked, keep_from_forks

SEAT = ".seat"
_TRIES = 3


class Presence:
    """Taken when made, until it is left. Raises OSError where no file can be made."""

    def __init__(self, folder: Path, command: str) -> None:
        self._path = folder / SEAT
        self._fd = keep_from_forks(_open_seat(self._path))
        try:  # the name is for people: on a full disk the seat counts without it
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, msgspec.json.encode(LockOwner.this_process(command)), 0)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                close_locked(self._fd)
                raise

    def leave(self) -> None:
        """The last one to leave takes the file away. A folder that was renamed meanwhile, or that cannot be written, keeps it, empty of
        meaning."""
        try:
            with suppress(OSError):
                if _is_alone(self._fd) and _is_same_file(self._path, self._fd):
                    self._path.unlink(missing_ok=True)
        finally:
            close_locked(self._fd)


def refuse_if_attended(folder: Path) -> None:
    """For who is about to remove a context, and has its lock. Raises ContextHeld if anybody sits there."""
    path = folder / SEAT
    try:
        fd = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return  # there is none; what cannot be opened is nobody's seat
    try:
        if _is_alone(fd):
            return
    finally:
        os.close(fd)
    try:
        owner = read_json(path, LockOwner)
    except (OSError, msgspec.DecodeError):
        owner = None
    if owner is not None and not owner.is_dead:
        text = f"process {owner.pid} on {owner.host} ({owner.command}) since {format_time(owner.since)}"
        hint = f"end it (Ctrl-D in a chat, or `kill {owner.pid}`), then try again"
    else:  # who sat down last has left
        text, hint = "another process", "leave the chats in this context, then try again"
    raise ContextHeld(f"context '{folder.name}' is open in {text}: it is not removed", hint)


def _open_seat(path: Path) -> int:
    for _ in range(_TRIES):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody is about to take the file away
        except OSError as error:
            if error.errno in NO_FLOCK:
                return fd
            os.close(fd)
            raise
        else:
            if _is_same_file(path, fd):
                return fd
        os.close(fd)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), os.fspath(path))


def _is_alone(fd: int) -> bool:
    """Whether nobody else sits; then nobody can sit down before `fd` is closed. Without flock nobody is known to sit."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
    return True


def _is_same_file(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False
