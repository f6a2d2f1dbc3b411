"""Whole files replaced at once: a reader sees the old content or the new, never a part, and a power cut keeps one of them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cru.files.regular import PRIVATE, make_private_folder, write_all

STALE = 60.0
"""Seconds after which nobody writes a temporary file any more."""

_LONGEST_NAME = 255
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
# a folder that takes no new file, a file mounted on its own, an owner that cannot be kept: writable, but only in place
_NO_RENAME = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV)
_NO_FOLDER_SYNC = (errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)


def replace_file(
    path: Path,
    data: bytes,
    *,
    new_mode: int = PRIVATE,
    keep_mode: bool = True,
    follow: bool = True,
    make_folders: bool = False,
    in_place: bool = False,
    sync: bool = True,
) -> None:
    """Write through a temporary file in the same folder, then rename it. Raises OSError; the old content is
    then still there, unless it could only be written in place.

    new_mode: permission bits of a file that is new, less the umask
    keep_mode: an existing file keeps its permission bits; without it it gets `new_mode`
    follow: a link's target is replaced; without it a link is refused
    make_folders: missing folders are made, private ones if the file is
    in_place: the owner is kept, and a file that no rename can replace is written to directly
    sync: the new content survives a power cut
    """
    path = _link_target(path, follow)
    if make_folders:
        if new_mode == PRIVATE:
            make_private_folder(path.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
    try:
        old = path.stat()
    except FileNotFoundError:
        old = None
    try:
        temporary = _write_temporary(path, data, new_mode, old if keep_mode else None, keep_owner=in_place, sync=sync)
        _rename(temporary, path)
    except OSError as error:
        if not in_place or old is None or error.errno not in _NO_RENAME:
            raise
        path.write_bytes(data)
    if sync:
        _sync_folder(path.parent)


def create_file(path: Path, data: bytes, *, sync: bool) -> bool:
    """Make a private file appear with its whole content; False if somebody else was first. `sync`: survive a power cut too."""
    temporary = _write_temporary(path, data, PRIVATE, None, sync=sync)
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        temporary.rename(path)  # two at once are not told apart here, but what appears is whole
    finally:
        temporary.unlink(missing_ok=True)
    if sync:
        _sync_folder(path.parent)
    return True


def set_aside(path: Path, suffix: str) -> Path:
    """Rename a file to `<name>.<suffix>-<n>` with the first free n; returns the new path. Raises OSError."""
    return path.rename(free_name(path, suffix))


def free_name(path: Path, suffix: str) -> Path:
    """`<name>.<suffix>-<n>` with the first n of which there is no file."""
    number = 1
    while (target := path.with_name(f"{path.name}.{suffix}-{number}")).exists():
        number += 1
    return target


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Keep other processes out while a file is read, changed and replaced: an exclusive flock on `PATH.lock`. Raises OSError."""
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:  # no such locks on this system; the rename still keeps the file whole
        yield
        return
    handle = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    try:
        flock(handle, LOCK_EX)
        yield
    finally:
        os.close(handle)


def _link_target(path: Path, follow: bool) -> Path:
    if follow:
        return Path(os.path.realpath(path))
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    return path


def _write_temporary(
    path: Path, data: bytes, mode: int, old: os.stat_result | None, *, keep_owner: bool = False, sync: bool
) -> Path:
    """The new content beside the file, with the bits of the old one."""
    _remove_stale_temporaries(path)
    name = f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f".{os.urandom(6).hex()}.tmp"
    temporary = path.parent / name
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        if old is not None:
            created = os.fstat(fd)
            if keep_owner and (created.st_uid, created.st_gid) != (old.st_uid, old.st_gid):
                os.fchown(fd, old.st_uid, old.st_gid)
            os.fchmod(fd, stat.S_IMODE(old.st_mode))
        write_all(fd, data)
        if sync:
            os.fsync(fd)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return temporary


def _rename(temporary: Path, path: Path) -> None:
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_stale_temporaries(path: Path) -> None:
    """Remove the temporary files of this file that writers which were killed left beside it: those older than a minute."""
    try:
        names = [name for name in os.listdir(path.parent) if name.endswith(".tmp")]
        if not names:
            return  # nearly always; an expression for this one name takes a millisecond

        import re
        import time

        is_temporary = re.compile(rf"\.?{re.escape(path.name)}\.\d+[.-][0-9a-f]{{8}}\.tmp").fullmatch
        for name in filter(is_temporary, names):
            place = path.parent / name
            if place.lstat().st_mtime < time.time() - STALE:
                place.unlink()
    except OSError:
        pass  # another process was faster, or it is not ours: the write itself tells what is wrong


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut; file systems that cannot sync a folder are left alone."""
    fd = -1
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        if fd >= 0:
            os.close(fd)
