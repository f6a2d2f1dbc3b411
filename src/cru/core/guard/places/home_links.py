"""Files of a project that the user's home leads to: a repository of dotfiles keeps what a shell, git or an editor starts with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache

from cru.core.base.files import is_inside
from cru.core.base.files.search_path import follow_links

MOST_ENTRIES = 2000
"""Entries of one folder that are looked at."""
CONFIG = ".config"


def home_links(user_home: str, roots: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the resolved places below these roots to which links in the user's home lead: a hidden file or folder of the home, an entry
    of `~/.config`, or of a folder in that, and these names; a closing slash means a folder."""
    return _home_links(user_home, roots, names, *_stamps(user_home))[0]


def links_between(user_home: str, roots: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the links below these roots on the way from the user's home to what `home_links` returns."""
    return _home_links(user_home, roots, names, *_stamps(user_home))[1]


def is_led_to(path: str, user_home: str, roots: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Return whether the user's home has a link to this place below one of these roots, or to a folder around it."""
    if not any(is_inside(path, root) for root in roots):
        return False
    return any(is_inside(path, place) for place in home_links(user_home, roots, names))


def _stamps(user_home: str) -> tuple[int, int]:
    return _changed(user_home), _changed(f"{user_home}/{CONFIG}")


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return 0


@lru_cache(maxsize=16)
def _home_links(
    user_home: str, roots: tuple[str, ...], names: tuple[str, ...], *stamps: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    led_to, between = dict[str, None](), dict[str, None]()
    for path in _candidates(user_home, names):
        if (real := os.path.realpath(path)) != path:
            led_to[real] = None
            between |= dict.fromkeys(link for link, _ in follow_links(path))
    # a link that leads to all of a project, or above it, is only another name for it
    inner, links = (
        tuple(path for path in paths if any(path != root and is_inside(path, root) for root in roots))
        for paths in (led_to, between)
    )
    return inner, links


def _candidates(user_home: str, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield f"{user_home}/{name.rstrip('/')}"
        if name.endswith("/"):
            yield from _links(f"{user_home}/{name.rstrip('/')}", depth=3)
    yield from (link for link in _links(user_home, depth=1) if os.path.basename(link).startswith("."))
    yield from _links(f"{user_home}/{CONFIG}", depth=2)


def _links(folder: str, depth: int) -> Iterator[str]:
    """Yield the links in a folder, and in those below it that are as deep at most."""
    try:
        with os.scandir(folder) as listing:
            entries = [entry for _, entry in zip(range(MOST_ENTRIES), listing, strict=False)]
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink():
            yield entry.path
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _links(entry.path, depth - 1)
