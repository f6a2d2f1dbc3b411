"""Programs on a PATH, and what cru gives to those that it starts for itself (git, bash, rg, bwrap), which nothing confines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache

MOST_LINKS = 40
"""On the way to one folder, as the kernel has it."""
LOADER = (
    "DYLD_", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LD_", "LOCALDOMAIN", "LOCPATH", "MALLOC_", "NIS_PATH",
    "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR",
)  # fmt: skip
"""How variables begin that have a program load, or read, what somebody else wrote before its own first line: what the loaders of glibc (its
"unsecure" variables), musl and macOS withhold from programs with more rights than who starts them."""


def own_env(env: Mapping[str, str], *roots: str) -> dict[str, str]:
    """That of programs that cru starts for itself: what stands in these folders has no say in what they are and load."""
    kept = {name: value for name, value in env.items() if not name.startswith(LOADER)}
    # an empty PATH means the current folder
    return {**kept, "PATH": own_path(env.get("PATH", os.defpath), *roots) or os.defpath}


@lru_cache(maxsize=16)
def own_path(path: str, *roots: str) -> str:
    """A PATH without folders that lie in a project, or to which something in it leads, as that of an activated environment does: what
    stands there, the project chooses, and commands in a sandbox may have put it there; what they keep in a session's /tmp, too. Commands
    have the whole PATH."""
    inside = tuple(
        dict.fromkeys(
            f"{place.rstrip('/')}/" for root in roots for place in (os.path.abspath(root), os.path.realpath(root))
        )
    )
    private = f"/cru-{os.getuid()}/"  # cru.core.conversations.home.private_parents
    return os.pathsep.join(
        folder
        for folder in path.split(os.pathsep)
        if not any(f"{way}/".startswith(inside) or private in f"{way}/" for way in _ways(folder))
    )


def _ways(folder: str) -> Iterator[str]:
    """The folder, and each place to which the links on the way to it lead."""
    yield os.path.abspath(folder)
    yield from (place for _, place in follow_links(folder))


def follow_links(path: str) -> Iterator[tuple[str, str]]:
    """Yield each link on the way to a file or folder, and the place that the whole path means then."""
    done, left = "", [part for part in os.path.abspath(path).split("/") if part]
    links = 0
    while left and links < MOST_LINKS:
        step = os.path.normpath(f"{done}/{left.pop(0)}")
        try:
            target = os.readlink(step)
        except OSError:  # no link, or nothing is there
            done = step
            continue
        links += 1
        whole = os.path.normpath(os.path.join(done or "/", target, *left))
        yield step, whole
        done, left = "", [part for part in whole.split("/") if part]


def find_program(name: str, path: str) -> str | None:
    """The first executable of that name in the absolute folders of `path`: what lies in other ones, a project chooses."""
    for folder in path.split(os.pathsep):
        file = os.path.join(folder, name)
        if folder.startswith("/") and os.access(file, os.X_OK) and os.path.isfile(file):
            return file
    return None


_resolve = lru_cache(maxsize=8)(os.path.realpath)


def exists_above(folder: str, name: str) -> bool:
    """Return whether a folder, or one above the place that it leads to, has an entry of this name.

    Where a folder leads is looked up once. It is asked before each command, hence texts and one system call a folder: pathlib takes ten
    times as long.
    """
    if os.access(f"{folder}/{name}", os.F_OK):
        return True
    above = _resolve(folder)
    while above:
        above = above.rpartition("/")[0]
        if os.access(f"{above}/{name}", os.F_OK):
            return True
    return False
