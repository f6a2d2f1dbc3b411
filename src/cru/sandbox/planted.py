"""Guards' files that were not there before a command: no mount can hold a place that does not exist, so what was put there goes aside."""

from __future__ import annotations

import os
from collections.abc import Iterable

SUFFIX = ".from-sandbox"


def look(paths: Iterable[str]) -> dict[str, str]:
    """What is at these places that were absent, or links: the target of the link, "" for nothing."""
    return {path: os.readlink(path) if os.path.islink(path) else "" for path in paths}


def put_aside(before: dict[str, str]) -> list[str]:
    """Rename what has come since then, and make links again; the new names. What cannot be renamed is named as it is."""
    moved = []
    for path, target in before.items():
        if (os.readlink(path) if os.path.islink(path) else "") == target and (target or not os.path.lexists(path)):
            continue
        try:
            moved += [aside] if (aside := _rename(path)) else []
            if target:
                os.symlink(target, path)
        except OSError:
            moved.append(path)
    return moved


def _rename(path: str) -> str:
    if not os.path.lexists(path):
        return ""
    number, aside = 1, path + SUFFIX
    while os.path.lexists(aside):
        number, aside = number + 1, f"{path}{SUFFIX}-{number}"
    os.rename(path, aside)
    return aside
