"""Commands that change the course: /clear, /compact, /stop, /pause, /quit."""

from __future__ import annotations

from cru.commands.desk import Desk
from cru.engine.commands import Said
from cru.engine.errors import TooFewMessages


async def clear(desk: Desk, _words: str) -> Said:
    """`cru -a`, said."""
    await desk.session.archive()
    name = desk.session.parts.store.name
    return Said(f"{name} starts from nothing; what was said before: cru -G {name} 0")


async def compact(desk: Desk, _words: str) -> Said:
    """`cru -z`, said. Raises NothingToCompact, ModelError and Interrupted."""
    name = desk.session.parts.store.name
    try:
        await desk.session.compact()
    except TooFewMessages as error:
        return Said(f"{name}: {error.message}")
    return Said(f"{name} is compacted; what was said before: cru -G {name} 0")


async def stop(desk: Desk, _words: str) -> Said:
    """End what runs and drop what waits. Scripts hear `command:stop` afterwards."""
    ran, waiting = desk.session.stop()
    dropped = f"{waiting} that waited {'is' if waiting == 1 else 'are'} dropped" if waiting else ""
    if ran:
        return Said(f"stopped{f'; {dropped}' if dropped else ''}")
    return Said(f"nothing runs{f'; {dropped}' if dropped else ''}")


async def pause(desk: Desk, _words: str) -> Said:
    """Returns when control is given back. Raises NotHere."""
    await desk.face.pause()
    return Said()


async def leave(desk: Desk, _words: str) -> Said:
    """Raises NotHere."""
    desk.face.leave()
    return Said()
