"""Commands that show: /help, /tools, /trace."""

from __future__ import annotations

from cru.commands.context import CommandContext
from cru.commands.errors import BadCommand
from cru.engine.commands import Command, CommandResult

WIDTH = 16  # columns of a command's name and arguments


async def help(desk: CommandContext, words: str) -> CommandResult:
    """All commands, those of plugins too; with a name that one. Raises UnknownCommand."""
    commands = desk.session.parts.commands
    if words:
        return CommandResult(_whole(commands.find(words.removeprefix("/"))))
    lines = [_line(_call(command), _about(command)) for command in commands.all()]
    return CommandResult("\n".join([*lines, *(["", desk.face.keys] if desk.face.keys else [])]))


def _line(call: str, about: str) -> str:
    """A long call has a line of its own."""
    return f"{call:<{WIDTH}}  {about}" if len(call) <= WIDTH else f"{call}\n{'':<{WIDTH}}  {about}"


def _call(command: Command) -> str:
    return f"/{command.name} {command.hint}".rstrip()


def _about(command: Command) -> str:
    return command.about if command.owner == "cru" else f"{command.about} ({command.owner})".lstrip()


def _whole(command: Command) -> str:
    """One command: how it is called, what it does, whose it is."""
    place = f" ({command.where})" if command.where else ""
    owner = "built in" if command.owner == "cru" else f"of the plugin {command.owner}{place}"
    return "\n".join(line for line in (_call(command), f"  {command.about}".rstrip(), f"  {owner}") if line)


async def tools(desk: CommandContext, _words: str) -> CommandResult:
    """The tools that are offered, those of plugins too, in the order in which the model sees them."""
    registry = desk.session.parts.tools
    rows = []
    for name in registry.names():
        tool = registry.find(name)
        if tool is not None:
            rows.append((name, tool.source, _first(tool.spec.description)))
    if not rows:
        return CommandResult("the model is offered no tools")
    names, sources = (max(len(row[i]) for row in rows) for i in (0, 1))
    return CommandResult(
        "\n".join(f"{name:<{names}}  {source:<{sources}}  {about}".rstrip() for name, source, about in rows)
    )


def _first(text: str) -> str:
    """The first sentence of the first line."""
    return text.strip().partition("\n")[0].partition(". ")[0].removesuffix(".")


async def trace(desk: CommandContext, words: str) -> CommandResult:
    """Raises BadCommand if the words are no number, NotInTrace if there is no such turn."""
    try:
        number = int(words or -1)
    except ValueError as error:
        raise BadCommand(
            f"/trace needs a number, not {words}",
            "`/trace` shows the last turn, `/trace 1` the oldest, `/trace -2` the one before the last",
        ) from error
    return CommandResult(desk.face.trace(number))
