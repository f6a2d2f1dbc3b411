"""Requests of a compaction: announced, recorded and sent as all requests are, with the purpose `compaction`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cru.core.base.values.messages import Message, Request, Span
from cru.core.events.bus import purpose
from cru.core.turn import NothingToCompact
from cru.core.turn.fallback import ask_beside
from cru.core.turn.parts import Parts, ResolvedModel
from cru.core.turn.round import ModelReply, adapt_request, announce_request, send_request
from cru.core.turn.turn import stop_for

TEXTS = ("goals", "todos")
BROKEN_OFF = {
    "length": "is cut off: it reached the limit of its length",
    "content_filter": "was stopped by a content filter",
    "refusal": "is a refusal",
}
"""Ends of replies (as adapters call them) whose text is not what was asked for."""
WHOLE = ("", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed", "end")
"""Ends of whole replies, as servers call them."""
CUT = "[… {left:,} characters left out here …]"


async def ask(parts: Parts, resolved: ResolvedModel, system: Span, text: str) -> str:
    """What the model answers; "" if it says nothing. Raises NothingToCompact if a handler cancelled the request or the reply is no
    whole answer, TurnStopped if a handler halted there, and ModelError."""
    with purpose("compaction", "cru"):
        reply = await ask_beside(parts, resolved, lambda model: _ask(parts, model, system, text))
    if reply.parts:
        raise NothingToCompact("the model called a tool instead of answering", "try again, or another model")
    if reply.reason.lower() not in WHOLE:
        why = BROKEN_OFF.get(reply.reason, f"ended with `{reply.reason}`")
        raise NothingToCompact(f"the model's answer {why}", "try again, or another model")
    return reply.content


async def _ask(parts: Parts, resolved: ResolvedModel, system: Span, text: str) -> ModelReply:
    request = Request(resolved.model.name, (system,), (Message("user", text),), (), resolved.parameters)
    announced = await announce_request(parts.bus, request, "", 0)
    if announced.answer.halt:
        raise stop_for(announced.answer, "the compaction")
    if announced.answer.stops:
        raise NothingToCompact(f"the request was cancelled: {announced.answer.reason}")
    request, reply = announced.request, ModelReply()
    used = resolved if request.model == resolved.model.name else await parts.models.choose(request.model)
    request = adapt_request(request, used, resolved)
    facts: dict[str, Any] = {"upto": parts.store.entries()[-1].id, "messages": request.messages}
    await send_request(parts, used, request, reply, round=0, changed_by=announced.messages_by, **facts)
    return reply


def fitted(texts: Sequence[str], room: int) -> list[str]:
    """The texts in at most about `room` characters: the longest lose their middle, all to the same length."""
    most, left = room, len(texts)
    for length in sorted(map(len, texts)):
        if length * left > most:
            share = max(1, most // left)
            return [_middle_out(text, share) for text in texts]
        most, left = most - length, left - 1
    return list(texts)


def _middle_out(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n{CUT.format(left=len(text) - 2 * half)}\n{text[len(text) - half :]}"


def texts(parts: Parts) -> list[str]:
    """The summary so far, goals and todos, with their titles."""
    known = {"summary so far": parts.store.summary()} | {name: parts.store.read_text(f"{name}.md") for name in TEXTS}
    return [f"[{title}]\n{text.strip()}" for title, text in known.items() if text.strip()]


def line(message: Message) -> str:
    """A message as text, with who says it."""
    return f"[{message.role.upper()}]: {said(message)}"


def said(message: Message) -> str:
    """A message as text."""
    return message.content + "".join(f"\n[call {c.name} {c.arguments}]" for c in message.calls)
