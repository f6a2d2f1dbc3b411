"""A session's work to its very end: what sub-agents in the background bring belongs to it."""

from __future__ import annotations

from cru.engine import Interrupted
from cru.engine.session import Session
from cru.engine.turn import LegResult


async def run_to_end(session: Session) -> LegResult | None:
    """Work the queue, and a leg more each time that sub-agents bring something, until none is left. Raises what `Session.run` does."""
    result = await session.run()
    try:
        while (result is None or result.cause == "done") and await session.wait_for_agents():
            result = await session.run() or result
    except Interrupted:
        return LegResult("interrupted", reason="interrupted")
    return result
