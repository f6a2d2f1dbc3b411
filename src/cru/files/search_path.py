"""Programs on a PATH, and where cru looks for those that it starts for itself (git, bash, rg, bwrap)."""

from __future__ import annotations

import os
from functools import lru_cache


@lru_cache(maxsize=16)
def own_path(path: str, root: str) -> str:
    """A PATH without the folders that lie in a project, as that of an activated environment does: what stands there, the project chooses,
    and commands in a sandbox may have put it there. Commands have the whole PATH."""
    inside = os.path.realpath(root).rstrip("/") + "/"
    return os.pathsep.join(
        folder for folder in path.split(os.pathsep) if not f"{os.path.realpath(folder)}/".startswith(inside)
    )


def find_program(name: str, path: str) -> str | None:
    """The first executable of that name in the absolute folders of `path`: what lies in other ones, a project chooses."""
    for folder in path.split(os.pathsep):
        file = os.path.join(folder, name)
        if folder.startswith("/") and os.access(file, os.X_OK) and os.path.isfile(file):
            return file
    return None
