"""Messages between contexts: sending one, with its two events, for the tool `send_message`, and those that a prompt took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cru.core.base.config.closest import closest
from cru.core.base.values.messages import RESOLVED, Entry
from cru.core.conversations import ContextError
from cru.core.conversations.home import Home
from cru.core.conversations.inbox import InboxMessage as InboxMessage
from cru.core.events.bus import Bus, Outcome
from cru.core.events.payloads import InboxSending, InboxSent
from cru.core.tools.protocol import ToolError

INBOX = "inbox"


async def send_message(bus: Bus, home: Home, message: InboxMessage) -> str:
    """Deliver a message, unless a handler cancels that or delivers it itself; what the model reads. Raises ToolError."""
    message = replace(message, to=_resolve(home, message.to))
    outcome = await bus.dispatch(InboxSending(message.to, message.content, message.from_))
    delivered_by, failure = "", None
    if outcome.answer.stops:
        sentence = f"Not sent: {outcome.answer.reason}"
    else:
        delivered_by, sentence = _deliverer(outcome), ""
        try:
            addition = _deliver(home, message) if delivered_by == INBOX else ""
            sentence = _describe_delivery(message.to, delivered_by) + addition
        except ToolError as error:
            delivered_by, sentence, failure = "", f"Not sent: {error.message}", error
    await bus.dispatch(InboxSent(message.to, message.content, message.from_, delivered_by, sentence))
    if failure is not None:
        raise failure
    return sentence


def _deliverer(outcome: Outcome[InboxSending]) -> str:
    """Who delivers: a handler that says so, else the inbox."""
    result = outcome.answer.result
    via = result.get("via") if isinstance(result, dict) else ""
    return INBOX if result is None else str(via or outcome.by)


def _resolve(home: Home, to: str) -> str:
    """Raises ToolError."""
    try:
        return home.resolve(to)
    except ContextError as error:
        raise ToolError(error.message, "" if to == "-" else error.hint) from error


def _deliver(home: Home, message: InboxMessage) -> str:
    """Into the inbox; says so if there was no such context before. Raises ToolError."""
    try:
        known = home.names()
        home.send(message)
    except ContextError as error:
        raise ToolError(error.message, error.hint) from error
    if message.to in known:
        return ""
    near = closest(message.to, known)
    return f" (a new context was made for it{f'; did you mean `{near}`?' if near else ''})"


def _describe_delivery(to: str, by: str) -> str:
    """What the model reads of a message that was delivered."""
    return f"Message sent to {to}" + ("" if by == INBOX else f" by {by}")


def context_beside(entries: Sequence[Entry], prompt: Entry, inbox_end: str) -> Iterator[str]:
    """Yield what the log has beside a prompt: the messages of other contexts that it took, and context of hooks.

    inbox_end: the line with which such messages end
    """
    resolutions = [e for e in entries if e.entry_type == RESOLVED and e.metadata.get("ref") == prompt.id]
    for resolution in resolutions:
        block, mark, _ = resolution.content.partition(f"\n{inbox_end}")
        if resolution.metadata.get("inbox") and mark:
            yield block + mark
    yield from resolutions[-1].metadata.get("context", ()) if resolutions else ()
