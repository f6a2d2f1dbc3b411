"""Commands of a session: /clear, /compact, /stop, /pause, /resume, /quit, /login, /theme, and those that show: /help, /tools, /trace."""

from __future__ import annotations

from cru.core.commands.context import CommandContext, table_row
from cru.core.commands.errors import BadCommand
from cru.core.turn import TooFewMessages
from cru.core.turn.commands import Command, CommandResult

CALL_WIDTH = 16
"""Columns of a command's name and arguments."""


async def clear(context: CommandContext, _words: str) -> CommandResult:
    """What `cru -a` does."""
    await context.session.archive()
    name = context.session.parts.store.name
    return CommandResult(f"{name} starts from nothing; what was said before: cru -G {name} 0")


async def compact(context: CommandContext, words: str) -> CommandResult:
    """What `cru -z` does, with what the summary is to heed. Raises NothingToCompact, ModelError and Interrupted."""
    name = context.session.parts.store.name
    try:
        await context.session.compact(words.strip())
    except TooFewMessages as error:
        return CommandResult(f"{name}: {error.message}")
    return CommandResult(f"{name} is compacted; what was said before: cru -G {name} 0")


async def stop(context: CommandContext, _words: str) -> CommandResult:
    """End what runs and drop what waits. Scripts hear `command:stop` afterwards."""
    ran, waiting = context.session.stop()
    dropped = f"{waiting} that waited {'is' if waiting == 1 else 'are'} dropped" if waiting else ""
    if ran:
        return CommandResult(f"stopped{f'; {dropped}' if dropped else ''}")
    return CommandResult(f"nothing runs{f'; {dropped}' if dropped else ''}")


async def pause(context: CommandContext, _words: str) -> CommandResult:
    """Returns when control is given back. Raises NotHere."""
    await context.chat.pause()
    return CommandResult()


async def resume(context: CommandContext, words: str) -> CommandResult:
    """What `cru --resume` does; with a name, go on in that conversation. Raises NotHere, NoSuchContext."""
    if name := words.strip():
        home = context.session.parts.tool_services.home
        context.chat.reopen("-c", name if home is None else home.find(name).name)
    else:
        context.chat.resume()
    return CommandResult()


async def new(context: CommandContext, words: str) -> CommandResult:
    """Go on in a new conversation; the old one is kept. Raises NotHere."""
    context.chat.reopen("-c", words.strip() or "new")
    return CommandResult()


async def rename(context: CommandContext, words: str) -> CommandResult:
    """Raises BadCommand without a name, NotHere."""
    if not words.strip():
        raise BadCommand("/rename needs a name", "`/rename NAME`")
    context.chat.reopen("-r", words.strip())
    return CommandResult()


async def leave(context: CommandContext, _words: str) -> CommandResult:
    """Raises NotHere."""
    context.chat.leave()
    return CommandResult()


async def help(context: CommandContext, words: str) -> CommandResult:
    """All commands, those of plugins too; with a name that one (further words say nothing more). Raises UnknownCommand."""
    commands = context.session.parts.services.commands
    if words:
        return CommandResult(_render_command(commands.find(words.split()[0].removeprefix("/"))))
    columns = context.face.columns
    lines = [_render_row(_call(command), _description(command), columns) for command in commands.all()]
    return CommandResult("\n".join([*lines, *(["", context.face.keys] if context.face.keys else [])]))


def _render_row(call: str, about: str, columns: int) -> str:
    """A long call has a line of its own."""
    if len(call) <= CALL_WIDTH:
        return table_row(f"{call:<{CALL_WIDTH}}  ", about, columns)
    return f"{call}\n{table_row(' ' * (CALL_WIDTH + 2), about, columns)}"


def _call(command: Command) -> str:
    return f"/{command.name} {command.hint}".rstrip()


def _description(command: Command) -> str:
    return command.about if command.owner == "cru" else f"{command.about} ({command.whose or command.owner})".lstrip()


def _render_command(command: Command) -> str:
    """One command: how it is called, what it does, whose it is."""
    place = f" ({command.where})" if command.where else ""
    owner = "built in" if command.owner == "cru" else f"{command.whose or f'of the plugin {command.owner}'}{place}"
    return "\n".join(line for line in (_call(command), f"  {command.about}".rstrip(), f"  {owner}") if line)


async def tools(context: CommandContext, _words: str) -> CommandResult:
    """The tools that are offered, those of plugins too, in the order in which the model sees them."""
    registry = context.session.parts.tools
    rows = []
    for name in registry.names():
        tool = registry.find(name)
        if tool is not None:
            rows.append((name, tool.source, _first_sentence(tool.spec.description)))
    if not rows:
        return CommandResult("the model is offered no tools")
    names, sources = (max(len(row[i]) for row in rows) for i in (0, 1))
    return CommandResult(
        "\n".join(
            table_row(f"{name:<{names}}  {source:<{sources}}  ", about, context.face.columns)
            for name, source, about in rows
        )
    )


def _first_sentence(text: str) -> str:
    """The first sentence of the first line."""
    return text.strip().partition("\n")[0].partition(". ")[0].removesuffix(".")


async def trace(context: CommandContext, words: str) -> CommandResult:
    """Raises BadCommand if the words are no number, NotInTrace if there is no such turn."""
    try:
        number = int(words or -1)
    except ValueError as error:
        raise BadCommand(
            f"/trace needs a number, not {words}",
            "`/trace` shows the last turn, `/trace 1` the oldest, `/trace -2` the one before the last",
        ) from error
    return CommandResult(context.face.trace(number))


async def login(context: CommandContext, words: str) -> CommandResult:
    """Ask for a key and keep it; used from the next request on. Raises NotHere, ListUnavailable and KeysUnusable."""
    text = await context.face.login(words.strip())
    context.models.renew_keys()
    return CommandResult(text)


async def theme(context: CommandContext, words: str) -> CommandResult:
    """List them, or use another one in this chat. Raises NotHere, and CommandError if it cannot be used."""
    return CommandResult(context.chat.theme(words.strip()))


async def complete_theme(context: CommandContext, typed: str) -> list[str]:
    return [name for name in context.chat.theme_names() if name.startswith(typed)]
