"""Folders that go with their process: of runs that keep nothing (`--no-session`), in memory where the system has a disk there, and of
sandboxes.

A folder is held by a `flock` on itself, which the kernel releases however its process dies; what a kill left is nobody's, and goes
at the next start.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from cru.core.base.files.atomic import private_opener
from cru.core.base.files.regular import read_regular
from cru.core.base.process.marks import process_identity
from cru.core.conversations import StoreUnwritable, os_error_text
from cru.core.conversations.home import private_parents
from cru.core.conversations.lock import NO_FLOCK, close_locked, keep_from_forks

_TRIES = 20
KEPT = ".kept"
"""Processes for which a folder stays, one a line."""


class HeldFolder:
    """A folder of this process alone, until it is removed; in the first of these parents where one can be made. Raises OSError."""

    def __init__(self, parents: Sequence[str]) -> None:
        self.path, self._fd = _make_folder(parents)
        self._process = os.getpid()

    def keep_for(self, pid: int) -> None:
        """It stays as long as this process lives. Raises OSError."""
        with open(self.path / KEPT, "a", encoding="ascii", opener=private_opener) as file:
            file.write(f"{pid} {process_identity(pid)}\n")

    def remove(self) -> str:
        """Remove it; what a person is to know of that, "" = nothing. What was forked off this process removes nothing."""
        if os.getpid() != self._process or self._fd < 0:
            return ""
        problem = ""
        try:
            if not _is_kept(self.path):
                _remove_tree(self.path)
        except OSError as error:
            problem = f"{self.path} could not be removed: {os_error_text(error)}"
        close_locked(self._fd)
        self._fd = -1
        with suppress(OSError):  # others have theirs in it
            self.path.parent.rmdir()
        return problem


class PrivateFolder(HeldFolder):
    """Of a run that keeps nothing. Raises StoreUnwritable if none can be made."""

    def __init__(self, env: Mapping[str, str]) -> None:
        try:
            super().__init__(private_parents(env))
        except OSError as error:
            text = f"{error.filename}: {os_error_text(error)}: --no-session finds no place for a folder"
            raise StoreUnwritable(text, "set TMPDIR to a folder of yours") from error
        self.home = self.path / "home"
        """The folder for what a home holds: homes lock themselves."""
        self.home.mkdir(mode=0o700)


def sweep(parent: str) -> None:
    """Remove what killed runs left in one of `private_parents`. What cannot be removed, or is somebody else's, stays."""
    with suppress(OSError, BlockingIOError), _locked(parent, fcntl.LOCK_EX | fcntl.LOCK_NB):
        for entry in os.scandir(parent):
            if entry.is_dir(follow_symlinks=False) and is_nobodys(entry.path) and not _is_kept(entry.path):
                with suppress(OSError):
                    _remove_tree(entry.path)
        os.rmdir(parent)


def _is_kept(folder: str | Path) -> bool:
    """Whether a process lives for which it stays."""
    try:
        lines = read_regular(os.path.join(folder, KEPT)).decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return False
    pairs = (line.partition(" ") for line in lines)
    return any(pid.isdecimal() and identity and process_identity(int(pid)) == identity for pid, _, identity in pairs)


def _remove_tree(path: str | Path) -> None:
    """However deep it is, whatever its folders permit, and whatever others put there meanwhile: each folder in it is opened up and moved to
    the top by descriptors alone. Raises OSError, when what can be removed is."""
    top = _open_folder(os.fspath(path))
    prefix, number = f".{os.urandom(8).hex()}-", count()
    problem: OSError | None = None
    try:
        waiting = os.listdir(top)
        while waiting:
            name = waiting.pop()
            try:
                if _open_up(name, top):
                    waiting += _empty(name, top, lambda: f"{prefix}{next(number)}")
                    os.rmdir(name, dir_fd=top)
                else:
                    os.unlink(name, dir_fd=top)
            except OSError as error:
                problem = problem or error
    finally:
        os.close(top)
    if problem is not None:
        raise problem
    os.rmdir(path)


def _empty(name: str, top: int, new_name: Callable[[], str]) -> list[str]:
    """Remove the files of a folder, and move its folders to the top; their names there. Raises OSError."""
    moved = []
    folder = _open_folder(name, top)
    try:
        for inner in os.listdir(folder):
            if _open_up(inner, folder):
                moved.append(new_name())
                os.rename(inner, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=folder)
    finally:
        os.close(folder)
    return moved


def _open_up(name: str, parent: int) -> bool:
    """Whether it is a folder, which is removable then: the kernel closes the work folders of layers, and some caches are closed. Raises
    OSError."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        return False
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return True
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)
    return True


def _make_folder(parents: Sequence[str]) -> tuple[Path, int]:
    first: OSError | None = None
    for parent in parents:
        try:
            return _make_below(parent)
        except OSError as error:
            first = first or error
    raise first or FileNotFoundError(2, os.strerror(2), "no folder")


def _make_below(parent: str) -> tuple[Path, int]:
    """Raises OSError."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            os.mkdir(parent, 0o700)
        try:
            with _locked(parent, fcntl.LOCK_EX):
                path = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
                fd = keep_from_forks(_open_folder(os.fspath(path)))
                _lock(fd, fcntl.LOCK_EX)
                return path, fd
        except FileNotFoundError:
            pass  # the last one of another run was removed at that moment
    raise FileNotFoundError(2, os.strerror(2), parent)


@contextmanager
def _locked(parent: str, how: int) -> Iterator[None]:
    """While nobody else makes or sweeps folders there. Raises OSError, PermissionError if it is another user's."""
    fd = _open_folder(parent)
    try:
        about = os.fstat(fd)
        if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
            raise PermissionError(1, "is not private to this user", parent)
        _lock(fd, how)
        if not os.path.samestat(os.lstat(parent), about):
            raise FileNotFoundError(2, os.strerror(2), parent)
        yield
    finally:
        os.close(fd)


def is_nobodys(path: str) -> bool:
    """Whether its process has ended. Without flock nobody knows, and it stays. Raises OSError."""
    fd = _open_folder(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _lock(fd: int, how: int) -> None:
    """Without flock (some network disks) there is no lock; then nothing is swept either."""
    try:
        fcntl.flock(fd, how)
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise


def _open_folder(path: str, parent: int | None = None) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
