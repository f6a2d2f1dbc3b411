"""The table of built-in commands. Their code is loaded when one is used, and the table when the first command is typed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

from msgspec import Struct

from cru.commands.context import CommandContext
from cru.commands.errors import BadCommand
from cru.engine.commands import Command, CommandResult


class CommandRow(Struct, frozen=True):
    """A command: `work` is MODULE.FUNCTION of this folder, called with the desk and what stands behind the name. The rest is as in
    Command; without a hint it takes no words."""

    name: str
    about: str
    work: str
    hint: str = ""
    reads: bool = False
    at_once: bool = False


HINT = "[list | reload [name] | enable name | disable name]"
TABLE = (
    CommandRow("clear", "start the conversation from nothing; the log keeps every line (cru -a)", "flow.clear"),
    CommandRow("compact", "replace the conversation by a summary that the model writes (cru -z)", "flow.compact"),
    CommandRow("exit", "leave the chat; the conversation is kept", "flow.leave", reads=True),
    CommandRow("help", "all commands, or one", "show.help", "[command]", reads=True),
    CommandRow("model", "which model answers; with a name: another one, kept for this context", "model.model", "[name]", reads=True),
    CommandRow("pause", "hand control to the shell until `fg`, as Ctrl-Z does", "flow.pause", reads=True),
    CommandRow("plugin", "what plugins are there; load one anew, or switch it for this session", "plugins.plugin", HINT),
    CommandRow("quit", "the same as /exit", "flow.leave", reads=True),
    CommandRow("stop", "end what runs and what waits; loops of plugins end too", "flow.stop", at_once=True),
    CommandRow("tools", "what the model may call, and whose it is", "show.tools", reads=True),
    CommandRow("trace", "what happened in the last turn, or in turn N (cru trace)", "show.trace", "[N]", reads=True),
)  # fmt: skip


def built_in(desk: CommandContext) -> Iterator[Command]:
    """The commands of a session, at its desk."""
    for row in TABLE:
        run = partial(_run, desk, row)
        yield Command(row.name, row.about, run, hint=row.hint, reads=row.reads, at_once=row.at_once)


async def _run(desk: CommandContext, row: CommandRow, words: str) -> CommandResult:
    """Raises BadCommand if words are given to a command that takes none."""
    if words and not row.hint:
        raise BadCommand(f"/{row.name} takes no words", f"`/{row.name}`: {row.about}")
    module, _, function = row.work.partition(".")
    said: CommandResult = await getattr(import_module(f"cru.commands.{module}"), function)(desk, words)
    return said
