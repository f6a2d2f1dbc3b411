"""Where cru looks for the programs that it starts for itself (git, bash, rg, bwrap)."""

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
