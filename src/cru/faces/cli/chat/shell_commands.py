"""Commands of the shell in the chat: `/hooks list` runs `cru hooks list` on the same terminal, with the same home and conversation."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import partial

from cru.core.command_table import COMMANDS
from cru.core.commands.errors import BadCommand, NotHere
from cru.core.compose import Start
from cru.core.turn.commands import CommandResult
from cru.faces.cli.dialogs.asker import TerminalAsker
from cru.faces.cli.terminal.keyboard import input_mode


async def run_in_shell(start: Start, asker: object, name: str, words: str) -> CommandResult:
    """Run `cru NAME WORDS`. Raises BadCommand if a quotation mark is open, NotHere without a terminal."""
    if not isinstance(asker, TerminalAsker):
        raise NotHere(f"/{name} needs a terminal", f"use `cru {name}` in a shell")
    try:
        behind = shlex.split(words) or COMMANDS[name].alone.split()
    except ValueError as error:
        raise BadCommand(f"/{name}: {error}", "close the quotation marks") from error
    where = () if start.private is not None else ("-C", start.context)
    argv = (sys.executable, "-P", "-m", "cru.faces.cli.main", "--home", str(start.home), *where, name, *behind)
    status = await asker.converse(partial(_show, argv, start.env, str(start.cwd)))
    return CommandResult(f"[exit code {status}]" if status else "")


async def _show(argv: tuple[str, ...], env: Mapping[str, str], folder: str, terminal: int) -> int:
    """Run it on the terminal, in this process group: Ctrl-C reaches it."""
    with input_mode(terminal, "lines"):
        process = subprocess.Popen(argv, stdin=terminal, stdout=terminal, stderr=terminal, env=env, cwd=folder)
        try:
            return await asyncio.to_thread(process.wait)
        except asyncio.CancelledError:
            process.terminate()
            raise
