"""Caches of package managers: confined programs write them, and nothing of that is there when the session has ended.

What is in a cache is run by later builds, outside too, so nobody may change it from inside. Where bubblewrap and the kernel can, changes
go into a layer over the folder that the session keeps in its own; else variables name folders in the /tmp of the session, empty at first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import is_inside
from cru.core.base.files.regular import make_private_folder
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.run import AT_ONCE, run_program
from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox.backends import BUBBLEWRAP, Detection
from cru.core.guard.sandbox.detect import command_line
from cru.core.guard.sandbox.home_places import daemon_folders
from cru.core.guard.sandbox.own_places import SHAPES, lies_in
from cru.core.guard.sandbox.profile import CacheLayer, Profile

PLACE = "/tmp/.caches"
SECONDS = 20.0
"""How long the trial of a layer may take, as long as that of the sandbox itself (detect.py): a trial that fails counts for the session."""


class CacheKind(Struct, frozen=True):
    """folder: in the user's home, unless the variable names another; variable: "", if there is none"""

    folder: str
    variable: str = ""


CACHES = (
    CacheKind(".cache", "XDG_CACHE_HOME"),
    CacheKind(".npm", "npm_config_cache"),
    CacheKind(".cargo", "CARGO_HOME"),
    CacheKind("go/pkg/mod", "GOMODCACHE"),
    CacheKind(".gradle", "GRADLE_USER_HOME"),
    CacheKind(".m2"),
    CacheKind(".sbt"),
    CacheKind(".ivy2"),
    CacheKind(".nuget/packages", "NUGET_PACKAGES"),
    CacheKind(".bun/install/cache", "BUN_INSTALL_CACHE_DIR"),
    CacheKind(".yarn/berry", "YARN_GLOBAL_FOLDER"),
    CacheKind(".local/share/pnpm"),
    CacheKind(".pub-cache", "PUB_CACHE"),
    CacheKind(".conda/pkgs", "CONDA_PKGS_DIRS"),
)


class SessionCaches:
    """The layers of one session. One that a running program has is not lent to another one: that gets a layer that ends with it."""

    def __init__(self, folders: Sequence[str], detection: Detection, env: Mapping[str, str]) -> None:
        """folders: of the session, for what is changed; the first one where layers work"""
        self._folders = folders
        self._folder: str | None = None
        """Empty: layers work nowhere; None: nobody has tried."""
        self._detection = detection
        self._env = env
        self._trying = asyncio.Lock()
        self._lent: set[str] = set()
        self._count = 0

    async def lend(self, profile: Profile, places: PathRoots) -> tuple[Profile, Callable[[], None]]:
        """The profile with caches, and what gives them back."""
        is_bubblewrap = self._detection.backend == BUBBLEWRAP
        place = PLACE if is_bubblewrap else f"{profile.temporary}/.caches"
        paths: list[str] = []
        variables: list[tuple[str, str]] = []
        for kind in CACHES:
            named = self._env.get(kind.variable, "") if kind.variable else ""
            path = os.path.realpath(named if named.startswith("/") else os.path.join(places.user_home, kind.folder))
            if lies_in(path, profile.writable):
                continue
            if is_bubblewrap and _may_be_layered(path, profile, places) and await self._find_folder():
                paths.append(path)
            elif kind.variable:
                variables.append((kind.variable, f"{place}/{kind.folder.strip('.').replace('/', '-')}"))
        # a build inside starts a daemon of its own and keeps a list of it: that folder is empty, and can be written
        daemons = [
            path for path in map(os.path.realpath, daemon_folders(places.user_home)) if lies_in(path, tuple(paths))
        ]
        layers = [*map(self._layer, paths), *(self._layer(path, is_empty=True) for path in daemons)]
        lent = {layer.changes for layer in layers} - self._lent
        self._lent |= lent
        hidden = (*profile.hidden, *(path for path in profile.masked if lies_in(path, tuple(paths))))
        hidden = tuple(path for path in hidden if path not in daemons)
        readable = tuple(path for path in profile.readable if path not in paths)
        profile = replace(profile, hidden=hidden, readable=readable, caches=tuple(layers), variables=tuple(variables))
        return profile, lambda: self._lent.difference_update(lent)

    def _layer(self, path: str, *, is_empty: bool = False) -> CacheLayer:
        base = os.path.join(self._folder or "", path.strip("/").replace("/", "+")[-200:])
        changes = os.path.join(base, "changes")
        if changes in self._lent:
            self._count += 1
            base = f"{base}-{self._count}"
            changes = os.path.join(base, "changes")
        work = os.path.join(base, "work")
        source = os.path.join(base, "empty") if is_empty else ""
        for folder in filter(None, (changes, work, source)):
            make_private_folder(folder)
        return CacheLayer(path, changes, work, source)

    async def _find_folder(self) -> str:
        """The folder for layers, looked for once."""
        async with self._trying:
            if self._folder is None:
                self._folder = ""
                for folder in self._folders:
                    if await self._try_layer(folder):
                        self._folder = folder
                        break
        return self._folder

    async def _try_layer(self, base: str) -> bool:
        """Whether bubblewrap, the kernel and the file system of the folder can: bubblewrap 0.11, Linux 5.11 (in memory 6.6)."""
        lower, changes, work = (os.path.join(base, name) for name in ("try", "try-changes", "try-work"))
        for folder in (lower, changes, work):
            make_private_folder(folder)
        profile = Profile("/", (), (), (), (), base, caches=(CacheLayer(lower, changes, work),))
        words = command_line(self._detection, profile, ("/bin/sh", "-c", 'echo > "$0/file"', lower))
        trial = Program(words, Path("/"), {"PATH": self._env.get("PATH", os.defpath)})
        ended = await run_program(trial, SECONDS, TextCapture(None, 2000), ending=AT_ONCE)
        return ended.exit_status == 0 and os.path.exists(os.path.join(changes, "file"))


def _may_be_layered(path: str, profile: Profile, places: PathRoots) -> bool:
    """Whether it is a folder of its own: what is hidden stays so, and a variable does not make all of a home a cache."""
    if not os.path.isdir(path):
        return False
    if _is_broad(path, places):
        return False
    return path in profile.readable or not lies_in(path, (*profile.hidden, *profile.masked))


@lru_cache(maxsize=len(CACHES) * SHAPES)
def _is_broad(path: str, places: PathRoots) -> bool:
    return any(is_inside(folder, path) for folder in (places.user_home, places.home, *places.roots))
