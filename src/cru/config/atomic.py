"""Whole files replaced at once: a reader sees the old content or the new, never a part, and a power cut keeps one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


STALE = 60.0
"""Seconds after which nobody writes a temporary file any more."""


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write through a temporary file in the same folder, fsync, rename. Missing folders are made; a symlink's target is
    replaced, not the link; an existing file keeps its mode, a new one gets `mode`. Raises OSError."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    os.makedirs(folder, exist_ok=True)
    sweep(target)
    try:
        mode = os.stat(target).st_mode & 0o777
    except FileNotFoundError:
        pass
    temporary = f"{target}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "wb") as out:
            out.write(data)
            out.flush()
            os.fchmod(file, mode)
            os.fsync(file)
        os.replace(temporary, target)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise
    _sync_folder(folder)


def sweep(path: str) -> None:
    """Remove the temporary files of this file that writers which were killed left beside it: those older than a minute."""
    import re
    import time

    folder, name = os.path.split(path)
    ours = re.compile(rf"\.?{re.escape(name)}\.\d+[.-][0-9a-f]{{8}}\.tmp").fullmatch
    try:
        for entry in os.listdir(folder or "."):
            place = os.path.join(folder, entry)
            if entry.endswith(".tmp") and ours(entry) and os.lstat(place).st_mtime < time.time() - STALE:
                os.unlink(place)
    except OSError:
        pass  # another process was faster, or it is not ours: the write itself tells what is wrong


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out while a file is read, changed and replaced: an exclusive flock on `PATH.lock`. Raises OSError."""
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:  # no such locks on this system; the rename still keeps the file whole
        yield
        return
    handle = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        flock(handle, LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync_folder(folder: str) -> None:
    """The rename itself survives a power cut; file systems that cannot sync a folder are left alone."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
