"""`jq` for hooks on a machine that has none: a folder, last on their PATH, whose `jq` is jaq (extra `shell`)."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent / "bin"
MISSING = 'there is no jq here; install it, or: pip install "cru[shell]"'


@lru_cache(maxsize=16)
def stand_in(path: str) -> tuple[tuple[str, str], ...]:
    """What to set in an environment with this PATH; nothing if it has a jq, if there is no jaq either, or if there is no PATH: shells then
    have one of their own."""
    from cru.extensions.hooks.launch.shells import find
    from cru.tools.shell import find_program

    jaq = None if not path or find_program("jq", path) else find("jaq", path)
    if jaq is None or not os.access(FOLDER / "jq", os.X_OK):
        return ()
    return (("PATH", f"{path}{os.pathsep}{FOLDER}"), ("CRU_JAQ", jaq))


def missed(stderr: str) -> bool:
    """Whether a shell has looked for a jq in vain."""
    return any("jq" in line and "not found" in line for line in stderr.splitlines()[:20])
