"""Make the commands of a session from the table (core/command_table.py). Their code is loaded when one is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from cru.core.command_table import COMMANDS, CommandRow, load_target
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand, NotHere
from cru.core.turn.commands import Command, CommandResult

CommandFunction = Callable[[CommandContext, str], Awaitable[CommandResult]]


def built_in(context: CommandContext) -> Iterator[Command]:
    """The commands of a session."""
    for name, row in COMMANDS.items():
        yield Command(
            name, row.about if name == row.name else f"the same as /{row.name}", partial(_run, context, row),
            hint=row.hint if row.chat else "[words]", reads=row.reads or not row.chat, at_once=row.at_once,
            complete=partial(_complete, context, row) if row.complete or row.verbs else None,
            foreign=tuple(row.foreign), is_hidden=row.only == "shell",
        )  # fmt: skip


async def _complete(context: CommandContext, row: CommandRow, typed: str) -> list[str]:
    if not row.complete:
        return [verb for verb in row.verbs if verb.startswith(typed)]
    names: list[str] = await load_target(f"{row.package}{row.complete}")(context, typed)
    return names


async def _run(context: CommandContext, row: CommandRow, words: str) -> CommandResult:
    """Raises BadCommand if words are given to a command that takes none, NotHere, FeatureMissing."""
    if row.only == "shell" or (row.only and context.face.chat is None):
        raise NotHere(f"/{row.name} works in the {row.only} only", row.instead)
    if not row.chat or _is_verb_of_shell(row, words):
        return await context.face.run_in_shell(row.name, words)
    if words and not row.hint:
        raise BadCommand(f"/{row.name} takes no words", f"`/{row.name}`: {row.about}")
    run: CommandFunction = load_target(f"{row.package}{row.chat}")
    return await run(context, words)


def _is_verb_of_shell(row: CommandRow, words: str) -> bool:
    """Whether the first word is one that only the shell's form of the command takes."""
    verb = words.partition(" ")[0]
    return verb in row.verbs and verb not in row.hint.translate(BRACKETS).split()


BRACKETS = str.maketrans("[|]", "   ")
