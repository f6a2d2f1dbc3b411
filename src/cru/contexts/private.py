"""Folders that go with their process: of runs that keep nothing (`--no-session`), in memory where the system has a disk there, and of
sandboxes.

A folder is held by a `flock` on itself, which the kernel releases however its process dies; what a kill left is nobody's, and goes
at the next start.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cru.contexts import StoreUnwritable, os_error_text
from cru.contexts.home import private_parents
from cru.contexts.lock import NO_FLOCK, close_locked, keep_from_forks

_TRIES = 20


class HeldFolder:
    """A folder of this process alone, until it is removed; in the first of these parents where one can be made. Raises OSError."""

    def __init__(self, parents: Sequence[str]) -> None:
        self.path, self._fd = _make_folder(parents)
        self._process = os.getpid()

    def remove(self) -> str:
        """Remove it; what a person is to know of that, "" = nothing. What was forked off this process removes nothing."""
        if os.getpid() != self._process or self._fd < 0:
            return ""
        problem = ""
        try:
            _open_up(self.path)
            shutil.rmtree(self.path)
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
            if entry.is_dir(follow_symlinks=False) and is_nobodys(entry.path):
                with suppress(OSError):
                    _open_up(entry.path)
                shutil.rmtree(entry.path, ignore_errors=True)
        os.rmdir(parent)


def _open_up(folder: str | Path) -> None:
    """Make all folders below removable: the kernel closes the work folders of layers, and some caches are closed. Raises OSError."""
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)


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


def _open_folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
