"""Dialogs with a person: the one way to the face that shows them. Nobody there means cancelled, at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cru.core.api.arguments import number
from cru.core.api.host import host
from cru.core.conversations.entries import new_id
from cru.core.events.payloads import InteractionCompleted, InteractionRequested, SessionPaused, SessionResumed

TIMEOUT = 300.0


async def show_dialog(
    kind: str, prompt: str, request: dict[str, Any], timeout_secs: Any = None
) -> dict[str, Any] | None:
    """Show a dialog between its two events; None for cancelled, timed out (0 and nil mean 300 s) and nobody there."""
    seconds = number(f"cru.ui.{kind}", "timeout_secs", TIMEOUT if timeout_secs is None else timeout_secs, 0) or TIMEOUT
    parts = host().session.parts
    dialogs = parts.services.face.dialogs
    if dialogs is None:
        return None
    dialog, started = new_id(), parts.recorder.clock()
    await parts.bus.dispatch(InteractionRequested(dialog, kind, prompt))
    outcome, reply = "failed", None
    try:
        async with asyncio.timeout(seconds) as clock:
            reply = await dialogs.show(kind, request)
        outcome = "cancelled" if reply is None else "answered"
    except TimeoutError:
        if not clock.expired():
            raise
        outcome = "timeout"
    finally:
        parts.recorder.person(started, kind, outcome)
        await parts.bus.dispatch(InteractionCompleted(dialog, kind, outcome, reply))
    return reply


@asynccontextmanager
async def hand_over_control(paused: str, resumed: str) -> AsyncIterator[None]:
    """For a face in the middle of a dialog: control is somebody else's for the block, and this is how it went and came back."""
    bus = host().session.parts.bus
    await bus.dispatch(SessionPaused(paused))
    try:
        yield
    finally:
        await bus.dispatch(SessionResumed(resumed))
