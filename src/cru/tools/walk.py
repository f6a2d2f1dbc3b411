"""The files below a folder, in the order of their names, without what .gitignore leaves out and without `.git`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from cru.tools.gitignore import IgnoreRules, ignores_above


class WalkStopped(Exception):
    """The walk was stopped before its end."""


def never() -> bool:
    return False


def deadline(seconds: float) -> Callable[[], bool]:
    end = monotonic() + seconds
    return lambda: monotonic() > end


def walk(
    start: Path, root: Path, stop: Callable[[], bool] = never
) -> Iterator[tuple[tuple[str, ...], os.DirEntry[str]]]:
    """(names below `start`, entry) of every file; links are given, but not followed. Raises Stopped when `stop()` is true.

    Folders that cannot be read are passed over.
    """
    ignores, above_names = ignores_above(start, root)
    skip = len(above_names)
    stack: list[tuple[tuple[str, ...], IgnoreRules]] = [(above_names, ignores)]
    while stack:
        if stop():
            raise WalkStopped
        names, ignores = stack.pop()
        path = start.joinpath(*names[skip:])
        ignores = ignores.within(path, len(names))
        below = []
        for entry in _entries(path):
            inner = (*names, entry.name)
            folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or ignores.is_ignored(inner, folder):
                continue
            if folder:
                below.append((inner, ignores))
            else:
                yield inner[skip:], entry
        stack.extend(reversed(below))


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as listing:
            return sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return []
