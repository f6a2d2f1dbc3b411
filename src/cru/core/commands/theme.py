"""/theme: the colours of the chat."""

from __future__ import annotations

from cru.core.commands.context import CommandContext
from cru.core.turn.commands import CommandResult


async def theme(context: CommandContext, words: str) -> CommandResult:
    """List them, or use another one in this chat. Raises NotHere, and CommandError if it cannot be used."""
    return CommandResult(context.face.theme(words.strip()))


async def complete(context: CommandContext, typed: str) -> list[str]:
    return [name for name in context.face.theme_names() if name.startswith(typed)]
