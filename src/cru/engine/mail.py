"""Sending to another context, with its two events; lent to the tool `send_message`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cru.contexts.errors import ContextError
from cru.contexts.home import Home
from cru.contexts.inbox import InboxMessage
from cru.events.bus import Bus
from cru.events.payloads import InboxSending, InboxSent
from cru.tools.protocol import ToolError

INBOX = "inbox"


def make_sender(bus: Bus, home: Home, here: str) -> Callable[[str, str, str | None], Awaitable[str]]:
    """The function (to, content, from or None) -> what the model is told. Raises ToolError."""

    async def send(to: str, content: str, sender: str | None) -> str:
        name = _name(home, to)
        said = await bus.dispatch(InboxSending(name, content, sender or here))
        if said.answer.stops:
            return f"Not sent: {said.answer.reason}"
        result = said.answer.result
        by = INBOX if result is None else str((result.get("via") if isinstance(result, dict) else "") or said.by)
        new = _deliver(home, InboxMessage(sender or here, name, content)) if by == INBOX else ""
        await bus.dispatch(InboxSent(name, content, sender or here, by))
        return describe_delivery(name, by) + new

    return send


def _name(home: Home, to: str) -> str:
    """Raises ToolError."""
    try:
        return home.resolve(to)
    except ContextError as error:
        raise ToolError(error.message, "" if to == "-" else error.hint) from error


def _deliver(home: Home, letter: InboxMessage) -> str:
    """Into the inbox; what is to be said if there was no such context before. Raises ToolError."""
    from cru.config.closest import closest

    try:
        known = home.names()
        home.send(letter)
    except ContextError as error:
        raise ToolError(error.message, error.hint) from error
    if letter.to in known:
        return ""
    near = closest(letter.to, known)
    return f" (a new context was made for it{f'; did you mean `{near}`?' if near else ''})"


def describe_delivery(to: str, by: str) -> str:
    """What the model is told of a message that was delivered."""
    return f"Message sent to {to}" + ("" if by == INBOX else f" by {by}")
