"""Sending to another context, with its two events; lent to the tool `send_message`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cru.contexts.home import Home
from cru.contexts.inbox import InboxMessage
from cru.events.bus import Bus
from cru.events.payloads import InboxSending, InboxSent

INBOX = "inbox"


def sender(bus: Bus, home: Home, here: str) -> Callable[[str, str, str | None], Awaitable[str]]:
    """The function (to, content, from or None) -> what the model is told."""

    async def send(to: str, content: str, sender: str | None) -> str:
        name = home.resolve(to)
        said = await bus.dispatch(InboxSending(name, content, sender or here))
        if said.answer.stops:
            return f"Not sent: {said.answer.reason}"
        result = said.answer.result
        by = INBOX if result is None else str((result.get("via") if isinstance(result, dict) else "") or said.by)
        if by == INBOX:
            home.send(InboxMessage(sender or here, name, content))
        await bus.dispatch(InboxSent(name, content, sender or here, by))
        return told(name, by)

    return send


def told(to: str, by: str) -> str:
    """What the model is told of a message that was delivered."""
    return f"Message sent to {to}" + ("" if by == INBOX else f" by {by}")
