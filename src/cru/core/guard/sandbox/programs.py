"""Programs that stay visible although the sandbox has its own /tmp, /run and /dev/shm: what runs cru, and what is on the user's PATH.

Everything here is mounted read-only. Elsewhere the machine is readable anyway, so nothing is done there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache

from cru.core.base.files import is_inside, login_home
from cru.core.base.files.search_path import own_path
from cru.core.guard.rules.paths import PathRoots, contains_secrets
from cru.core.guard.sandbox.own_places import SHAPES, lies_in

MASKED = ("/dev/shm", "/run", "/tmp")
"""Folders of this machine that a confined command does not see."""
KERNEL = ("/dev", "/proc", "/sys")
"""Where no program lies: a link that leads there, such as /proc/self/root, could show anything."""
BIN = ("bin", "sbin")
INSTALLATION = ("lib", "lib64", "libexec", "pyvenv.cfg")
"""What shows that the folder around `bin` is an installation, whose programs need more of it than `bin`."""


def visible_programs(
    path: str,
    places: PathRoots,
    opened: tuple[str, ...],
    hidden: tuple[str, ...],
    temporary: str,
    homes: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return the masked folders and files of programs that commands must see.

    path: the user's PATH; opened: folders that commands may change, which are visible anyway; hidden: what they must not see;
    temporary: the session's /tmp; homes: which are masked, too
    """
    apart = (*opened, *hidden, temporary, login_home())
    candidates = [place for place in _masked_runtime(places.home, homes) if _may_show_runtime(place, places, hidden)]
    # a folder to which a link in the project leads is none: a command could turn the link before the next command
    for folder in _masked_folders(own_path(path, *opened), homes):
        if os.path.isdir(folder) and _may_show(folder, places, hidden, apart):
            candidates.append(folder)
            candidates += [part for part in _installation(folder) if _may_show(part, places, hidden, apart)]
    return _outermost(tuple(candidates), opened, places.home)


@lru_cache(maxsize=SHAPES)
def _outermost(candidates: tuple[str, ...], opened: tuple[str, ...], home: str) -> tuple[str, ...]:
    """Return these without those that are visible in another one, or in what may be changed."""
    visible = [folder for folder in opened if folder != "/"]
    shown: list[str] = []
    for place in candidates:
        around = shown if is_inside(place, home) else (*visible, *shown)
        if not any(is_inside(place, folder) for folder in around):
            shown.append(place)
    return tuple(shown)


@lru_cache(maxsize=1)
def runtime_paths() -> tuple[str, ...]:
    """Return the interpreter, its installation, the virtual environment, and the folder that cru is imported from."""
    packages = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
    folders = [part for prefix in (sys.prefix, sys.base_prefix) for part in _parts(os.path.abspath(prefix))]
    return tuple(dict.fromkeys(_spellings([*folders, packages, *_executables()])))


def _parts(prefix: str) -> Iterator[str]:
    """Yield an installation, or the parts of one that shares its folder with the user's files."""
    if any(is_inside(home, os.path.realpath(prefix)) for home in (os.path.expanduser("~"), login_home(), *MASKED)):
        yield from (os.path.join(prefix, name) for name in (*BIN, *INSTALLATION))
    else:
        yield prefix


def _executables() -> Iterator[str]:
    """Yield the interpreter and what each link on the way to it names."""
    file = os.path.abspath(sys.executable)
    for _ in range(10):
        yield file
        if not os.path.islink(file):
            return
        file = os.path.normpath(os.path.join(os.path.dirname(file), os.readlink(file)))


def _spellings(paths: Iterable[str]) -> Iterator[str]:
    """Yield each path as it is named, and as it is once its links are followed."""
    for path in paths:
        yield path
        yield os.path.realpath(path)


@lru_cache(maxsize=4)
def _masked_runtime(home: str, homes: tuple[str, ...]) -> tuple[str, ...]:
    """Return what of the runtime is masked. cru may be installed in its own home, which is hidden."""
    inner = f"{home.rstrip('/')}/"
    return tuple(place for place in runtime_paths() if place.startswith(inner) or lies_in(place, (*MASKED, *homes)))


def _may_show_runtime(place: str, places: PathRoots, hidden: tuple[str, ...]) -> bool:
    """Return whether this shows nothing else that is hidden."""
    if not os.path.exists(place) or place in (places.home, *MASKED):
        return False
    real = os.path.realpath(place)
    shut = tuple(folder for folder in hidden if folder != places.home)
    if lies_in(place, shut) or lies_in(real, shut) or _holds(real, (places.user_home,)):
        return False
    # below another name of a folder nothing hides what is hidden in it
    return place == real or not _holds(real, hidden)


@lru_cache(maxsize=64 * SHAPES)
def _holds(folder: str, paths: tuple[str, ...]) -> bool:
    """Return whether one of these paths is the folder or lies in it, by their names."""
    return any(is_inside(path, folder) for path in paths)


_contains_secrets = lru_cache(maxsize=64 * SHAPES)(contains_secrets)


@lru_cache(maxsize=16)
def _masked_folders(path: str, homes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of a PATH that are masked, and those named `bin` that links lead to."""
    named = [os.path.normpath(folder) for folder in path.split(os.pathsep) if folder.startswith("/")]
    led_to = [real for real in map(os.path.realpath, named) if os.path.basename(real) in BIN]
    return tuple(dict.fromkeys(folder for folder in (*named, *led_to) if lies_in(folder, (*MASKED, *homes))))


def _may_show(place: str, places: PathRoots, hidden: tuple[str, ...], apart: tuple[str, ...]) -> bool:
    """Return whether a masked place is one of programs. What is hidden neither holds it nor lies in it, and none of `apart` lies in it."""
    ways = (place, os.path.realpath(place))
    real = ways[1]
    if not os.path.exists(place) or (lies_in(real, KERNEL) and not lies_in(real, MASKED)):
        return False
    # sockets of the user's services lie all over /run, and a link in another project may lead to those in /tmp
    is_in_run, is_turned = lies_in(real, ("/run",)), real != place and lies_in(real, MASKED)
    if (is_in_run or is_turned) and os.path.basename(real) not in (BIN if is_in_run else (*BIN, *INSTALLATION)):
        return False
    if any(lies_in(way, hidden) for way in ways):
        return False
    if any(_holds(way, (*apart, *MASKED)) for way in ways):
        return False
    return not any(_contains_secrets(way, places) for way in ways)


def _installation(folder: str) -> list[str]:
    """Return what programs in a folder `bin` need beside it. What else is around it may be a project."""
    around, name = os.path.split(folder)
    return [os.path.join(around, part) for part in INSTALLATION] if name in BIN else []
