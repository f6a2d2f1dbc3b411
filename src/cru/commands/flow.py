"""Commands that change the course: /clear, /compact, /stop, /pause, /quit."""

from __future__ import annotations

from cru.commands.context import CommandContext
from cru.engine.commands import CommandResult
from cru.engine.errors import TooFewMessages


async def clear(desk: CommandContext, _words: str) -> CommandResult:
    """`cru -a`, said."""
    await desk.session.archive()
    name = desk.session.parts.store.name
    return CommandResult(f"{name} starts from nothing; what was said before: cru -G {name} 0")


async def compact(desk: CommandContext, _words: str) -> CommandResult:
    """`cru -z`, said. Raises NothingToCompact, ModelError and Interrupted."""
    name = desk.session.parts.store.name
    try:
        await desk.session.compact()
    except TooFewMessages as error:
        return CommandResult(f"{name}: {error.message}")
    return CommandResult(f"{name} is compacted; what was said before: cru -G {name} 0")


async def stop(desk: CommandContext, _words: str) -> CommandResult:
    """End what runs and drop what waits. Scripts hear `command:stop` afterwards."""
    ran, waiting = desk.session.stop()
    dropped = f"{waiting} that waited {'is' if waiting == 1 else 'are'} dropped" if waiting else ""
    if ran:
        return CommandResult(f"stopped{f'; {dropped}' if dropped else ''}")
    return CommandResult(f"nothing runs{f'; {dropped}' if dropped else ''}")


async def pause(desk: CommandContext, _words: str) -> CommandResult:
    """Returns when control is given back. Raises NotHere."""
    await desk.face.pause()
    return CommandResult()


async def leave(desk: CommandContext, _words: str) -> CommandResult:
    """Raises NotHere."""
    desk.face.leave()
    return CommandResult()
