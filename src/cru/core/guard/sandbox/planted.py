"""Guards' files that were not there before a command: no mount can hold a place that does not exist, so what was put there goes aside.
Instruction files that git tracks stay: commands may change them, as branches do, and the person sees a notice."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice

from cru.core.base.files import is_inside
from cru.core.base.files.folder_handle import open_without_links
from cru.core.base.files.regular import read_regular
from cru.core.guard.places.gitlinks import is_tracked
from cru.core.guard.sandbox.profile import GUIDES
from cru.core.guard.sandbox.repositories import Risks, without_lines

SUFFIX = ".from-sandbox"
LARGEST = 1 << 20
"""Bytes of an accepted file that are looked at."""
MOST_FILES, DEEPEST = 100, 20
"""Of a folder in which all may be accepted."""


def look(paths: Iterable[str]) -> dict[str, str]:
    """What is at these places that were absent, or links: the target of the link, "" for nothing."""
    return {path: os.readlink(path) if os.path.islink(path) else "" for path in paths}


def put_aside(before: Mapping[str, str], trees: tuple[str, ...], accepted: Mapping[str, bytes]) -> list[str]:
    """Rename what has come since then, and make links again; return the new names. What cannot be renamed is named with the reason.

    trees: what commands can change; accepted: files of which those with a content of this digest stay
    """
    moved = []
    for path, target in before.items():
        try:
            moved += _settle(path, target, trees, accepted)
        except Exception as error:  # noqa: BLE001  the boundary around what strangers made: the others are looked at, and it is told
            moved.append(f"{path} (which stands there still: {error})")
    return moved


def _settle(path: str, target: str, trees: tuple[str, ...], accepted: Mapping[str, bytes]) -> list[str]:
    """Of one of them. Raises OSError."""
    if (os.readlink(path) if os.path.islink(path) else "") == target and (target or not os.path.lexists(path)):
        return []
    if (accepted and is_accepted(path, accepted)) or is_tracked_guide(path):
        return []
    folder, name = os.path.split(path)
    real = os.path.realpath(folder)
    if not any(is_inside(real, tree) for tree in trees):
        return []  # a link leads out of what commands can change, so none of them made what is there
    with _changeable(real) as handle:
        aside = _rename(name, handle)
        if target:
            os.symlink(target, name, dir_fd=handle)
    return [f"{folder}/{aside}"] if aside else []


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
    folder, name = os.path.split(path)
    with _changeable(folder) as handle:
        aside = _rename(name, handle)
        if rest is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(name, flags, 0o644, dir_fd=handle), "wb") as file:
                file.write(rest)
    return [f"{folder}/{aside}"] if aside else []


@contextmanager
def _changeable(folder: str) -> Iterator[int]:
    """Hold a folder of which no part is a link, whatever something that still runs does to it meanwhile. One that the user has made
    read-only is writable so long. Raises OSError."""
    handle = open_without_links(folder, make=False)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if os.access(folder, os.W_OK | os.X_OK):
            yield handle
            return
        place = f"/proc/self/fd/{handle}"  # a handle of what cannot be read has no fchmod
        os.chmod(place, mode | stat.S_IRWXU)
        try:
            yield handle
        finally:
            os.chmod(place, mode)
    finally:
        os.close(handle)


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


def _rename(name: str, handle: int) -> str:
    """Rename an entry of a folder, and return its new name; "" if there is none. Raises OSError."""
    if not _exists(name, handle):
        return ""
    number, aside = 1, name + SUFFIX
    while _exists(aside, handle):
        number, aside = number + 1, f"{name}{SUFFIX}-{number}"
    os.rename(name, aside, src_dir_fd=handle, dst_dir_fd=handle)
    return aside


def _exists(name: str, handle: int) -> bool:
    try:
        os.lstat(name, dir_fd=handle)
    except FileNotFoundError:
        return False
    return True


def is_tracked_guide(path: str) -> bool:
    """Return whether this is an instruction file that git tracks, in any folder that is a work tree."""
    name = next((name for name in GUIDES if path.endswith(f"/{name}")), "")
    return bool(name) and is_tracked(path[: -len(name) - 1], name)


def look_at_guides(roots: Iterable[str]) -> dict[str, str]:
    """Return the state of each instruction file below these roots, whether or not git tracks it; "" if it is missing."""
    return {path: _describe(path) for root in roots for name in GUIDES for path in [f"{root}/{name}"]}


def changed_guides(before: dict[str, str]) -> list[str]:
    """Return the tracked ones that have changed since then."""
    return [
        path for path, state in before.items() if (now := _describe(path)) and now != state and is_tracked_guide(path)
    ]


def _describe(path: str) -> str:
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_ctime_ns}"
