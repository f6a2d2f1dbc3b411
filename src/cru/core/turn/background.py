"""What runs in the background, and the end of a session's work: what sub-agents bring belongs to it."""

from __future__ import annotations

import asyncio

from cru.core.turn import Interrupted
from cru.core.turn.parts import Parts
from cru.core.turn.session import Session
from cru.core.turn.settling import wakers
from cru.core.turn.turn import LegResult


async def run_to_end(session: Session) -> LegResult | None:
    """Work the queue, and a leg more each time that sub-agents bring something, until none is left. Raises what `Session.run` does."""
    return await finish_agents(session, await session.run())


async def finish_agents(session: Session, result: LegResult | None) -> LegResult | None:
    """The same after a leg that came to this result."""
    try:
        while (result is None or result.cause == "done") and await session.wait_for_agents():
            result = await session.run() or result
    except Interrupted:
        return LegResult("interrupted", reason="interrupted")
    return result


def has_report(parts: Parts) -> bool:
    """Whether something ended in the background that the model has not heard of: `Session.run` tells it."""
    return any(waker.has_report() for waker in wakers(parts.services))


async def wait_for_report(parts: Parts) -> bool:
    """Wait for that; False if nothing runs that could bring it."""
    waiting = [asyncio.ensure_future(waker.wait_for_any()) for waker in wakers(parts.services)]
    try:
        for done in asyncio.as_completed(waiting):
            if await done:
                return True
        return False
    finally:
        for task in waiting:
            task.cancel()
