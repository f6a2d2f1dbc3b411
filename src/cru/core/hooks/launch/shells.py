"""Which shell runs a command: never a login shell, never with start-up files. docs/decisions/hooks.md says why these.

And `jq` for hooks on a machine that has none: a folder, last on their PATH, whose `jq` is jaq (extra `shell`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from cru.core.base.files.search_path import find_program
from cru.core.hooks.errors import NoShell
from cru.core.hooks.model.mapping import System

Which: TypeAlias = Callable[[str], "str | None"]

PROGRAMS: dict[str, tuple[str, ...]] = {
    "bash": ("bash",),
    "sh": ("sh",),
    "brush": ("brush",),
    "powershell": ("pwsh", "powershell"),
    "git-bash": (r"C:\Program Files\Git\bin\bash.exe", r"C:\Program Files (x86)\Git\bin\bash.exe"),
    "cmd": ("cmd",),
}
"""A bare `bash` on the PATH of a Windows machine is mostly that of WSL, which sees other files: Git's own is named by its place."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "bash": ("--norc", "--noprofile", "-c"),
    "git-bash": ("--norc", "--noprofile", "-c"),
    "brush": ("--norc", "--noprofile", "-c"),
    "sh": ("-c",),
    "powershell": ("-NoProfile", "-NonInteractive", "-Command"),
    "cmd": ("/D", "/S", "/C"),
}

NAMED: dict[System, dict[str, tuple[str, ...]]] = {
    "posix": {"bash": ("bash",), "powershell": ("powershell",)},
    "windows": {"bash": ("git-bash",), "powershell": ("powershell",)},
}
"""What an entry asks for by name (`shell`)."""

SYSTEM: System = "windows" if os.name == "nt" else "posix"
USUAL_PLACES = "/bin:/usr/bin:/usr/local/bin"


def choose(system: System, which: Which, shells: Sequence[str], named: str = "") -> tuple[str, ...]:
    """The program and its arguments before the command's text: of the first of `shells` that is there, or of the one that an entry asks
    for. Raises NoShell."""
    names = NAMED[system].get(named, (named,)) if named else shells
    for shell in names:
        for program in PROGRAMS.get(shell, ()):
            path = which(program)
            if path:
                return (path, *ARGUMENTS[shell])
    hint = f"install {names[0]}" + (', or: pip install "cru[shell]"' if "brush" in names else "")
    raise NoShell(f"there is no {' or '.join(names)} to run it", hint)


@lru_cache(maxsize=16)
def find_shell(shells: tuple[str, ...], named: str, path: str) -> tuple[str, ...]:
    """The same for this machine and a PATH. Raises NoShell."""
    return choose(SYSTEM, lambda name: find(name, path), shells, named)


def find(name: str, path: str) -> str | None:
    """A program on the PATH, in the usual places, or installed beside this Python."""
    if os.name == "nt":
        import shutil

        return shutil.which(name, path=path)
    return (
        find_program(name, path)
        or find_program(name, USUAL_PLACES)
        or find_program(name, os.path.dirname(sys.executable))
    )


JQ_FOLDER = Path(__file__).parent / "bin"
JQ_MISSING = 'there is no jq here; install it, or: pip install "cru[shell]"'


@lru_cache(maxsize=16)
def jq_stand_in(path: str) -> tuple[tuple[str, str], ...]:
    """What to set in an environment with this PATH; nothing if it has a jq, if there is no jaq either, or if there is no PATH: shells then
    have one of their own."""
    jaq = None if not path or find_program("jq", path) else find("jaq", path)
    if jaq is None or not os.access(JQ_FOLDER / "jq", os.X_OK):
        return ()
    return (("PATH", f"{path}{os.pathsep}{JQ_FOLDER}"), ("CRU_JAQ", jaq))


NO_JQ = re.compile(r"(?<![\w./-])jq: (?:command )?not found|not found: jq\b")


def missed_jq(stderr: str) -> bool:
    """Whether a shell has looked for a jq in vain."""
    return any(NO_JQ.search(line) for line in stderr.splitlines()[:20])
