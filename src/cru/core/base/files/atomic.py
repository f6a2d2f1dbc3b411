"""Whole files replaced at once: a reader sees the old content or the new, never a part, and a power cut keeps one of them. And files that
only the user may read, whatever the umask lets through."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from cru.core.base.files import unsynced
from cru.core.base.files.regular import NOT_REGULAR, PRIVATE, make_private_folder, open_folder, open_regular, write_all

STALE = 60.0
"""Seconds after which nobody writes a temporary file any more."""

_LONGEST_NAME = 255
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
# a folder that takes no new file, a file mounted on its own, an owner that cannot be kept: writable, but only in place
_NO_RENAME = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV)
_NO_FOLDER_SYNC = (errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)
# removed or replaced since it was written, or no longer readable for us
_NOT_OURS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO)
_syncing = Lock()


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
    no_links: bool = False,
    mode: int | None = None,
) -> None:
    """Write through a temporary file in the same folder, then rename it. Raises OSError; the old content is
    then still there, unless it could only be written in place.

    new_mode: permission bits of a file that is new, less the umask
    keep_mode: an existing file keeps its permission bits; without it it gets `new_mode`
    follow: a link's target is replaced, unless it is a device or the like; without it a link is refused
    make_folders: missing folders are made, private ones if the file is
    in_place: the owner is kept, and a file that no rename can replace is written to directly
    sync: the new content survives a power cut; without it the caller adds the path to `unsynced`, or could do without the file
    mode: all of the file's permission bits, independent of the umask and of the file before; they appear with the content
    no_links: no folder on the way may have become a link since the path, absolute, was resolved
    """
    path = _link_target(path, follow)
    if no_links:
        from cru.core.base.files.folder_handle import open_without_links

        folder = open_without_links(path.parent, make=make_folders)
    else:
        if make_folders and not new_mode & 0o077:
            make_private_folder(path.parent)
        elif make_folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        folder = open_folder(path.parent, 0, None)
    try:
        _replace(folder, path.name, data, new_mode, keep_mode, in_place, sync, mode)
    finally:
        os.close(folder)


def _replace(
    folder: int, name: str, data: bytes, new_mode: int, keep_mode: bool, in_place: bool, sync: bool, mode: int | None
) -> None:
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    try:
        temporary = _write_temporary(
            folder, name, data, new_mode, old if keep_mode else None, keep_owner=in_place, sync=sync, exact=mode
        )
        _rename(folder, temporary, name)
    except OSError as error:
        if not in_place or old is None or error.errno not in _NO_RENAME:
            raise
        _write_in_place(folder, name, data, sync, mode)
    if sync:
        _sync_folder(folder)


def create_file(path: Path, data: bytes) -> bool:
    """Make a private file appear with its whole content, also after a power cut. Return False if another process was faster."""
    folder = open_folder(path.parent, 0, None)
    try:
        temporary = _write_temporary(folder, path.name, data, PRIVATE, None, sync=True)
        try:
            os.link(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # two at once are not told apart here, but what appears is whole
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            _unlink(folder, temporary)
        _sync_folder(folder)
    finally:
        os.close(folder)
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
        target = Path(os.path.realpath(path))
        if path.is_symlink() and not target.is_file() and target.exists():
            raise OSError(NOT_REGULAR)  # root could replace /dev/zero by a file
        return target
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    return path


def _write_temporary(
    folder: int,
    name: str,
    data: bytes,
    mode: int,
    old: os.stat_result | None,
    *,
    keep_owner: bool = False,
    sync: bool,
    exact: int | None = None,
) -> str:
    """Write the new content beside the file, with the bits `exact` or those of the old one. Return its name."""
    _remove_stale_temporaries(folder, name)
    temporary = f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    if len(os.fsencode(temporary)) > _LONGEST_NAME:
        temporary = f".{os.urandom(6).hex()}.tmp"
    bits = exact if exact is not None or old is None else stat.S_IMODE(old.st_mode)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode if bits is None else PRIVATE, dir_fd=folder)
    try:
        if old is not None:
            created = os.fstat(fd)
            if keep_owner and (created.st_uid, created.st_gid) != (old.st_uid, old.st_gid):
                os.fchown(fd, old.st_uid, old.st_gid)
        write_all(fd, data)
        if bits is not None:
            os.fchmod(fd, bits)  # after the writing, which would clear the bits that make a program run as its owner
        if sync:
            os.fsync(fd)
    except BaseException:
        _unlink(folder, temporary)
        raise
    finally:
        os.close(fd)
    return temporary


def _rename(folder: int, temporary: str, name: str) -> None:
    try:
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _unlink(folder, temporary)
        raise


def _unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _write_in_place(folder: int, name: str, data: bytes, sync: bool, mode: int | None) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        write_all(fd, data)
        if mode is not None:
            os.fchmod(fd, mode)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def _remove_stale_temporaries(folder: int, name: str) -> None:
    """Remove the temporary files of this file that writers which were killed left beside it: those older than a minute."""
    try:
        names = [other for other in os.listdir(folder) if other.endswith(".tmp")]
        if not names:
            return  # nearly always; an expression for this one name takes a millisecond

        import re
        import time

        is_temporary = re.compile(rf"\.?{re.escape(name)}\.\d+[.-][0-9a-f]{{8}}\.tmp").fullmatch
        for other in filter(is_temporary, names):
            if os.stat(other, dir_fd=folder, follow_symlinks=False).st_mtime < time.time() - STALE:
                os.unlink(other, dir_fd=folder)
    except OSError:
        pass  # another process was faster, or it is not ours: the write itself tells what is wrong


def _sync_folder(folder: int) -> None:
    """Make a rename in a folder survive a power cut. Does nothing on file systems that cannot sync a folder."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def sync_files() -> None:
    """Make the files in `unsynced` and their names survive a power cut. May run in several threads: each returns when what it found there
    is durable. Raises OSError; what comes after the file that failed stays in `unsynced`."""
    with _syncing:
        paths = sorted(unsynced)
        unsynced.difference_update(paths)
        places = [*paths, *dict.fromkeys(map(os.path.dirname, paths))]
        for number, place in enumerate(places, 1):
            try:
                _sync_path(place)
            except OSError as error:
                unsynced.update(places[number:])
                raise OSError(error.errno, error.strerror, place) from error


def _sync_path(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
        return
    try:
        _sync_folder(handle)
    finally:
        os.close(handle)


def write_private(path: str | os.PathLike[str], data: bytes, mode: int = PRIVATE) -> None:
    """Write a file that only the user may read, whatever the umask lets through; one that exists keeps its mode. Raises OSError, also for a
    link."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=private_opener)`: a new one is the user's alone."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE)
