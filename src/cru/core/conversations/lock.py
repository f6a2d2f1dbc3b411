"""Who works on a context: the kernel decides among cru processes, the file `.lock` tells programs that speak chibi's protocol.

A `flock` on the context's folder is released by the kernel however its holder dies. Beside it `.lock` holds unix seconds as
decimal text, rewritten every heartbeat, and `.lock.json` says who it is; its mtime follows the heartbeat, which tells whether
the two files belong together.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import msgspec
from msgspec import Struct

from cru.core.base.files import read_json
from cru.core.base.files.regular import PRIVATE, read_regular
from cru.core.conversations import ContextError, ContextHeld, NoSuchContext, write_error
from cru.core.conversations.entries import format_time, now

LOCK, OWNER = ".lock", ".lock.json"
_HINT = "wait until it is done, {end}or work in another context with -C NAME"
NO_FLOCK = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_LONGEST_BEAT = 3600


_HELD: set[int] = set()
"""Descriptors of this process that hold a lock of the kernel."""


def close_locked(fd: int) -> None:
    """Let go of a lock and its descriptor; the lock goes even if another process has a copy of it."""
    _HELD.discard(fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
    finally:
        os.close(fd)


def keep_from_forks(fd: int) -> int:
    """The descriptor: what a plugin forks off gets no copy of it, which would hold the lock as long as that process lives."""
    _HELD.add(fd)
    return fd


def _close_in_child() -> None:
    for fd in _HELD:
        os.close(fd)
    _HELD.clear()


os.register_at_fork(after_in_child=_close_in_child)


class LockOwner(Struct, frozen=True):
    """A process that holds a context, or has it open.

    pid: its process
    host: the name of its machine
    command: what it does, for people
    since: unix seconds
    """

    pid: int
    host: str
    command: str
    since: int

    @classmethod
    def this_process(cls, command: str) -> LockOwner:
        return cls(os.getpid(), os.uname().nodename, command, now())

    @property
    def is_of_this_host(self) -> bool:
        return self.host == os.uname().nodename

    @property
    def is_dead(self) -> bool:
        """Whether the process is gone for certain; of another host's nobody knows."""
        return self.is_of_this_host and not _is_alive(self.pid)


class LockState(Struct, frozen=True):
    """What the two lock files say.

    last_beat: unix seconds of the last sign of life; None: unreadable
    owner: the cru process that signed `.lock`; None: another program's
    """

    last_beat: int | None
    owner: LockOwner | None


class ContextLock:
    """Holds a context while its block runs; not reentrant. Entering raises ContextHeld, NoSuchContext, StoreUnwritable, and what
    `check` raises, which is called when nobody else can work there any more. `to_remove`: the kernel's lock is enough on a full disk,
    where no file can be made."""

    def __init__(
        self,
        folder: Path,
        command: str,
        heartbeat: int,
        *,
        check: Callable[[], object] = lambda: None,
        to_remove: bool = False,
    ) -> None:
        self._folder = folder
        self._command = command
        self._heartbeat = clamp_heartbeat(heartbeat)
        self._check = check
        self._to_remove = to_remove
        self._fd = -1
        self._beat_fd = -1
        self._stop = Event()

    @property
    def is_held(self) -> bool:
        return self._fd >= 0

    def __enter__(self) -> None:
        if self.is_held:
            raise _held_error(self._folder, self._heartbeat)
        fd = _lock_folder(self._folder, self._heartbeat)
        try:
            self._check()
            self._beat_fd = self._claim(fd)
            if self._beat_fd >= 0:
                self._stop.clear()
                self._thread = Thread(target=self._keep_alive, args=(fd,), name="cru-lock", daemon=True)
                self._thread.start()
        except BaseException:
            close_locked(fd)
            raise
        self._fd = fd

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self._give_back()
        except ContextError:
            if kind is None:  # else what went wrong before says more; a lock file that stays is nobody's
                raise
        finally:
            if self._beat_fd >= 0:
                os.close(self._beat_fd)
            close_locked(self._fd)
            self._fd = self._beat_fd = -1

    def _give_back(self) -> None:
        """Take the lock's files away."""
        if self._beat_fd >= 0:
            self._stop.set()
            self._thread.join()
            # After a long suspension another program may have taken the lock over: then the files are not ours to remove.
            if _is_ours(self._fd, self._beat_fd):
                _remove_files(self._fd, self._folder)

    def _claim(self, folder: int) -> int:
        """Create `.lock`; an abandoned one is taken over. -1 if it does without."""
        for _ in range(3):
            try:
                beat = os.open(LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE, dir_fd=folder)
                if self._sign(folder, beat):
                    return beat
            except FileExistsError:
                if not _is_abandoned(read_lock(self._folder, self._heartbeat), self._heartbeat):
                    break
                _remove_files(folder, self._folder)
            except OSError as error:
                if self._to_remove and error.errno in _NO_SPACE:
                    return -1
                raise write_error(self._folder / LOCK, error) from error
        raise _held_error(self._folder, self._heartbeat)

    def _sign(self, folder: int, beat: int) -> bool:
        """Say who it is, then since when: a kill in between leaves an empty `.lock`, which is nobody's. False if another program has
        taken the empty one over meanwhile."""
        try:
            _unlink(folder, OWNER)
            owner = os.open(OWNER, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE, dir_fd=folder)
            try:
                os.write(owner, msgspec.json.encode(LockOwner.this_process(self._command)))
            finally:
                os.close(owner)
            os.pwrite(beat, b"%d" % now(), 0)
        except OSError:
            os.close(beat)
            _remove_files(folder, self._folder)
            raise
        if _is_ours(folder, beat):
            return True
        os.close(beat)
        return False

    def _keep_alive(self, folder: int) -> None:
        while not self._stop.wait(self._heartbeat):
            try:
                os.pwrite(self._beat_fd, b"%d" % now(), 0)
                os.utime(OWNER, dir_fd=folder)
            except OSError:
                continue  # one missed beat; the kernel's lock stands


def clamp_heartbeat(seconds: int) -> int:
    """Seconds between two heartbeats, whatever the setting says."""
    return min(max(1, seconds), _LONGEST_BEAT)


def read_lock(folder: Path, heartbeat: int) -> LockState | None:
    """What the lock files of a context say; None if there is no `.lock`. Takes and changes nothing."""
    try:
        text = read_regular(folder / LOCK)
    except FileNotFoundError:
        return None
    except OSError:
        return LockState(None, None)
    beat = int(text) if text.strip().isdigit() and len(text) < 20 else None
    return LockState(beat, _read_owner(folder / OWNER, beat, heartbeat))


def is_stale(state: LockState, heartbeat: int) -> bool:
    """chibi's rule by the clock, which may have been ahead when the lock was taken; and a process of this host that is gone."""
    if state.last_beat is None or abs(now() - state.last_beat) > heartbeat * 3 // 2:
        return True
    return state.owner is not None and state.owner.is_dead


def is_suspended(folder: Path, state: LockState) -> bool:
    """Whether the holder lives and holds the kernel's lock, although its heartbeat is old: it was stopped, or the machine slept. Takes the
    lock for a moment if it is free."""
    if state.owner is None or not state.owner.is_of_this_host or state.owner.is_dead:
        return False
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # without flock (some network disks) the heartbeat alone decides
    finally:
        os.close(fd)
    return False


def _is_abandoned(state: LockState | None, heartbeat: int) -> bool:
    """Whether `.lock` may be taken over by the owner of the kernel's lock. A cru process of this host that signed it would
    still have the kernel's lock if it lived; its pid may have been given to another process, so that is not asked."""
    if state is None or is_stale(state, heartbeat):
        return True
    return state.owner is not None and state.owner.is_of_this_host


def _read_owner(path: Path, beat: int | None, heartbeat: int) -> LockOwner | None:
    """Who signed; None if the signature is missing, broken, or older than `.lock`, which then is another program's."""
    try:
        signed = path.stat().st_mtime
        holder = read_json(path, LockOwner)
    except (OSError, msgspec.DecodeError):
        return None
    return holder if beat is None or beat - signed <= heartbeat else None


def _lock_folder(folder: Path, heartbeat: int) -> int:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise _gone_error(folder) from error
    except OSError as error:
        raise write_error(folder, error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise _held_error(folder, heartbeat) from error
    except OSError as error:
        if error.errno not in NO_FLOCK:  # without flock (some network disks) `.lock` alone decides
            os.close(fd)
            raise write_error(folder, error) from error
    if not _leads_to(folder, fd):
        close_locked(fd)
        raise _gone_error(folder)
    return keep_from_forks(fd)


def _leads_to(folder: Path, fd: int) -> bool:
    """Whether the name still leads to the folder that was opened: a rename or a removal may have come between."""
    try:
        return os.path.samestat(os.stat(folder), os.fstat(fd))
    except OSError:
        return False


def _gone_error(folder: Path) -> NoSuchContext:
    hint = "it was deleted or renamed meanwhile; list the contexts with -L"
    return NoSuchContext(f"there is no context '{folder.name}' any more", hint)


def _held_error(folder: Path, heartbeat: int) -> ContextHeld:
    for _ in range(5):  # the holder may be about to sign
        state = read_lock(folder, heartbeat)
        if state is not None and state.owner is not None and not state.owner.is_dead:
            break
        time.sleep(0.004)
    name = folder.name
    if state is None or (state.owner is not None and state.owner.is_dead):
        return ContextHeld(f"context '{name}' is in use by another process", _HINT.format(end="end that process, "))
    if state.owner is None:
        text = f"context '{name}' is in use by another program: {folder / LOCK} was refreshed at {format_time(state.last_beat)}"
        return ContextHeld(
            text, f"wait until it is done; its lock lapses after {heartbeat * 3 // 2} seconds without a refresh"
        )
    owner = state.owner
    ours = owner.pid == os.getpid()
    process = "this process" if ours else f"process {owner.pid}"
    text = f"context '{name}' is in use by {process} on {owner.host} ({owner.command}) since {format_time(owner.since)}"
    if os.environ.get("CRU_CONTEXT") == name and os.environ.get("CRU_HOME") == str(folder.parent.parent):
        return ContextHeld(f"{text}; this run was started from within its turn", "give it another context with -C NAME")
    return ContextHeld(text, _HINT.format(end="" if ours else f"end it (Ctrl-C there, or `kill -INT {owner.pid}`), "))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove_files(folder: int, path: Path) -> None:
    for name in (LOCK, OWNER):
        try:
            _unlink(folder, name)
        except OSError as error:
            raise write_error(path / name, error) from error


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def _is_ours(folder: int, beat: int) -> bool:
    try:
        return os.path.samestat(os.stat(LOCK, dir_fd=folder, follow_symlinks=False), os.fstat(beat))
    except FileNotFoundError:
        return False
