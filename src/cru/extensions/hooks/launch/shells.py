"""Which shell runs a command: never a login shell, never with start-up files. docs/decisions/0006-hook-shell.md says why these."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, TypeAlias

from cru.extensions.hooks.errors import NoShell

System: TypeAlias = Literal["posix", "windows"]
Which: TypeAlias = Callable[[str], "str | None"]

SHELLS: dict[System, dict[str, tuple[str, ...]]] = {
    "posix": {
        "crush": ("bash", "sh", "brush"),
        "cru": ("bash", "sh", "brush"),
        "claude": ("sh", "bash", "brush"),
        "codex": ("bash", "sh", "brush"),
        "gemini": ("bash", "sh", "brush"),
    },
    "windows": {
        "crush": ("git-bash", "brush"),
        "cru": ("git-bash", "brush"),
        "claude": ("git-bash", "powershell"),
        "codex": ("cmd",),
        "gemini": ("powershell",),
    },
}
"""System → dialect → shells, the first one that is there is taken."""

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

USUAL_PLACES = "/bin:/usr/bin:/usr/local/bin"


def choose(system: System, which: Which, dialect: str, named: str = "") -> tuple[str, ...]:
    """The program and its arguments before the command's text. Raises NoShell."""
    wanted = NAMED[system].get(named, (named,)) if named else SHELLS[system][dialect]
    for shell in wanted:
        for program in PROGRAMS.get(shell, ()):
            found = which(program)
            if found:
                return (found, *ARGUMENTS[shell])
    hint = f"install {wanted[0]}" + (', or: pip install "cru[shell]"' if "brush" in wanted else "")
    raise NoShell(f"there is no {' or '.join(wanted)} to run it", hint)


@lru_cache(maxsize=16)
def shell(dialect: str, named: str, path: str) -> tuple[str, ...]:
    """The same for this machine and a PATH. Raises NoShell."""
    return choose("windows" if os.name == "nt" else "posix", lambda name: find(name, path), dialect, named)


def find(name: str, path: str) -> str | None:
    """A program on the PATH, in the usual places, or installed beside this Python."""
    from cru.tools.shell import find_program

    if os.name == "nt":
        import shutil

        return shutil.which(name, path=path)
    return (
        find_program(name, path)
        or find_program(name, USUAL_PLACES)
        or find_program(name, os.path.dirname(sys.executable))
    )
