"""The table of built-in commands. Their code is loaded when one is used, and the table when the first command is typed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

from msgspec import Struct

from cru.commands.desk import Desk
from cru.commands.errors import BadCommand
from cru.engine.commands import Command, Said


class Row(Struct, frozen=True):
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
    Row("clear", "start the conversation from nothing; the log keeps every line (cru -a)", "flow.clear"),
    Row("compact", "replace the conversation by a summary that the model writes (cru -z)", "flow.compact"),
    Row("exit", "leave the chat; the conversation is kept", "flow.leave", reads=True),
    Row("help", "all commands, or one", "show.help", "[command]", reads=True),
    Row("model", "which model answers; with a name: another one, kept for this context", "model.model", "[name]", reads=True),
    Row("pause", "hand control to the shell until `fg`, as Ctrl-Z does", "flow.pause", reads=True),
    Row("plugin", "what plugins are there; load one anew, or switch it for this session", "plugins.plugin", HINT),
    Row("quit", "the same as /exit", "flow.leave", reads=True),
    Row("stop", "end what runs and what waits; loops of plugins end too", "flow.stop", at_once=True),
    Row("tools", "what the model may call, and whose it is", "show.tools", reads=True),
    Row("trace", "what happened in the last turn, or in turn N (cru trace)", "show.trace", "[N]", reads=True),
)  # fmt: skip


def built_in(desk: Desk) -> Iterator[Command]:
    """The commands of a session, at its desk."""
    for row in TABLE:
        run = partial(_run, desk, row)
        yield Command(row.name, row.about, run, hint=row.hint, reads=row.reads, at_once=row.at_once)


async def _run(desk: Desk, row: Row, words: str) -> Said:
    """Raises BadCommand if words are given to a command that takes none."""
    if words and not row.hint:
        raise BadCommand(f"/{row.name} takes no words", f"`/{row.name}`: {row.about}")
    module, _, function = row.work.partition(".")
    said: Said = await getattr(import_module(f"cru.commands.{module}"), function)(desk, words)
    return said
