"""Files as commands, the way Crush runs them: `./check.sh` needs no execute bit, and a line end of Windows or an interpreter that lies
elsewhere does not stop it. The source gets the interpreter in front of such a path; everything else is the shell's."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from cru.core.guard.shell.command_starts import CommandStart, find_command_starts
from cru.core.hooks.errors import BadScript
from cru.core.hooks.launch import script_probe


def insert_interpreters(source: str, shell: str, env: Mapping[str, str], cwd: Path) -> str:
    """The source with what must stand before its paths.

    shell: the program that will run it
    """
    if "/" not in source and "$" not in source:
        return source
    for start in sorted(find_command_starts(source, env), key=lambda start: start.at, reverse=True):
        words = _words_before(start, shell, cwd)
        if words:
            source = f"{source[: start.at]}{shlex.join(words)} {source[start.at :]}"
    return source


def _words_before(start: CommandStart, shell: str, cwd: Path) -> tuple[str, ...]:
    word = start.text
    if word is None or not script_probe.is_path(word):
        return ()
    if start.folders is None and not word.startswith("/"):
        return ()
    try:
        return script_probe.find_interpreter_words(word, os.path.join(cwd, *(start.folders or ()), word), shell)
    except BadScript as error:
        message = shlex.quote(f"{word}: {error.message}")
        return (shell, "-c", f"echo {message} >&2; exit {script_probe.CANNOT_RUN}")
