"""The saved outputs of a context (see output.py): emptied on demand, cleaned by age."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cru.contexts.entries import now
from cru.tools.output import FOLDER
from cru.values.entries import Entry

DAY = 86400


def clear(context: Path) -> int:
    """Remove every saved output of the context in that folder; how many. Raises OSError."""
    with _opened(context) as fd:
        names = [name for name, _ in _files(fd)]
        return _remove(fd, names)


def clean(context: Path, days: int, visible: Callable[[], Iterable[Entry]]) -> int:
    """Remove those older than `days` + 1 days; how many. One that an entry of that time still names stays: `visible` gives the entries,
    and is asked only if something is that old. Raises OSError."""
    limit = now() - (days + 1) * DAY
    with _opened(context) as fd:
        old = [name for name, written in _files(fd) if written < limit]
        if not old:
            return 0
        recent = "\n".join(f"{e.content}\n{e.metadata}" for e in visible() if e.timestamp >= limit)
        return _remove(fd, [name for name in old if name not in recent])


@contextmanager
def _opened(context: Path) -> Iterator[int]:
    """The folder's descriptor, -1 if there is none. A link is not followed: what it leads to is not ours."""
    try:
        fd = os.open(context / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        yield -1
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _files(fd: int) -> list[tuple[str, float]]:
    if fd < 0:
        return []
    with os.scandir(fd) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    return [(name, about.st_mtime) for name, about in found if stat.S_ISREG(about.st_mode)]


def _remove(fd: int, names: Iterable[str]) -> int:
    count = 0
    for name in names:
        try:
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            continue  # another process was faster
        count += 1
    return count
