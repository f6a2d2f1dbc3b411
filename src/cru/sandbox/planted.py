"""Guards' files that were not there before a command: no mount can hold a place that does not exist, so what was put there goes aside."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import islice

from cru.files.regular import read_regular
from cru.sandbox.instruction_files import is_tracked_guide
from cru.sandbox.repositories import Risks, without_lines

SUFFIX = ".from-sandbox"
LARGEST = 1 << 20
"""Bytes of an accepted file that are looked at."""
MOST_FILES, DEEPEST = 100, 20
"""Of a folder in which all may be accepted."""


def look(paths: Iterable[str]) -> dict[str, str]:
    """What is at these places that were absent, or links: the target of the link, "" for nothing."""
    return {path: os.readlink(path) if os.path.islink(path) else "" for path in paths}


def put_aside(before: Mapping[str, str], accepted: Mapping[str, bytes]) -> list[str]:
    """Rename what has come since then, and make links again; the new names. What cannot be renamed is named with the reason. `accepted`:
    files of which those with a content of this digest stay."""
    moved = []
    for path, target in before.items():
        try:
            moved += _settle(path, target, accepted)
        except Exception as error:  # noqa: BLE001  the boundary around what strangers made: the others are looked at, and it is told
            moved.append(f"{path} (which stands there still: {error})")
    return moved


def _settle(path: str, target: str, accepted: Mapping[str, bytes]) -> list[str]:
    """Of one of them. Raises OSError."""
    if (os.readlink(path) if os.path.islink(path) else "") == target and (target or not os.path.lexists(path)):
        return []
    if (accepted and is_accepted(path, accepted)) or is_tracked_guide(path):
        return []
    aside = _rename(path)
    if target:
        os.symlink(target, path)
    return [aside] if aside else []


def quarantine_risks(risks: Risks, trees: tuple[str, ...], accepted: Mapping[str, bytes]) -> list[str]:
    """Rename files that git would run or obey, and keep the lines of each that are harmless; return the new names, as `put_aside` does."""
    moved = []
    for path, texts in risks.items():
        try:
            if not (accepted and is_accepted(path, accepted)):
                moved += _quarantine(path, without_lines(path, texts, trees))
        except Exception as error:  # noqa: BLE001  the boundary around what strangers made: the others are looked at, and it is told
            moved.append(f"{path} (which stands there still: {error})")
    return moved


def _quarantine(path: str, rest: bytes | None) -> list[str]:
    """Raises OSError."""
    folder = os.path.dirname(path)
    if os.path.realpath(folder) != folder:  # something that still runs has put a link in its place
        raise OSError("a folder on the way to it has become a link")
    aside = _rename(path)
    if rest is not None:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
            file.write(rest)
    return [aside] if aside else []


def is_accepted(path: str, accepted: Mapping[str, bytes]) -> bool:
    """Whether there is nothing but accepted files in it, few and not deep."""
    rest, count = [path], 0
    while rest:
        place = rest.pop()
        try:
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode):
                with os.scandir(place) as listing:
                    inner = [entry.path for entry in islice(listing, MOST_FILES + 1)]
            elif not stat.S_ISREG(mode) or place not in accepted or _digest(place) != accepted[place]:
                return False
            else:
                continue
        except OSError:
            return False
        count += len(inner)
        if not inner or count > MOST_FILES or place.count("/") - path.count("/") >= DEEPEST:
            return False
        rest += inner
    return True


def _digest(path: str) -> bytes:
    """Raises OSError."""
    return sha256(read_regular(path, LARGEST)).digest()


def _rename(path: str) -> str:
    if not os.path.lexists(path):
        return ""
    number, aside = 1, path + SUFFIX
    while os.path.lexists(aside):
        number, aside = number + 1, f"{path}{SUFFIX}-{number}"
    os.rename(path, aside)
    return aside
