"""/login: a key of a provider, kept in cru's home or the keyring."""

from __future__ import annotations

from cru.core.commands.context import CommandContext
from cru.core.turn.commands import CommandResult


async def login(context: CommandContext, words: str) -> CommandResult:
    """Ask for a key and keep it; used from the next request on. Raises NotHere, ListUnavailable and KeysUnusable."""
    text = await context.face.login(words.strip())
    context.models.renew_keys()
    return CommandResult(text)
