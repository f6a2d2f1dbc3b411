"""Guards' files that were not there before a command: no mount can hold a place that does not exist, so what was put there goes aside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import islice

SUFFIX = ".from-sandbox"
LARGEST = 1 << 20
"""Bytes of an accepted file that are looked at."""
MOST_FILES = 100


def look(paths: Iterable[str]) -> dict[str, str]:
    """What is at these places that were absent, or links: the target of the link, "" for nothing."""
    return {path: os.readlink(path) if os.path.islink(path) else "" for path in paths}


def put_aside(before: dict[str, str], accepted: Mapping[str, bytes]) -> list[str]:
    """Rename what has come since then, and make links again; the new names. What cannot be renamed is named as it is. `accepted`: files of
    which those with a content of this digest stay."""
    moved = []
    for path, target in before.items():
        if (os.readlink(path) if os.path.islink(path) else "") == target and (target or not os.path.lexists(path)):
            continue
        if accepted and _is_accepted(path, accepted):
            continue
        try:
            moved += [aside] if (aside := _rename(path)) else []
            if target:
                os.symlink(target, path)
        except OSError:
            moved.append(path)
    return moved


def _is_accepted(path: str, accepted: Mapping[str, bytes]) -> bool:
    """Whether there is nothing but accepted files in it."""
    try:
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                return sha256(file.read(LARGEST + 1)).digest() == accepted.get(path)
        with os.scandir(path) as listing:
            inner = [entry.path for entry in islice(listing, MOST_FILES + 1)]
    except OSError:
        return False
    return 0 < len(inner) <= MOST_FILES and all(not os.path.islink(p) and _is_accepted(p, accepted) for p in inner)


def _rename(path: str) -> str:
    if not os.path.lexists(path):
        return ""
    number, aside = 1, path + SUFFIX
    while os.path.lexists(aside):
        number, aside = number + 1, f"{path}{SUFFIX}-{number}"
    os.rename(path, aside)
    return aside
