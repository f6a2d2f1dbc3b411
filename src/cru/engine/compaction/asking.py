"""Requests of a compaction: announced, recorded and sent as all requests are, with the purpose `compaction`."""

from __future__ import annotations

from typing import Any

from cru.engine import round
from cru.engine.asking import for_voice
from cru.engine.errors import NothingToCompact
from cru.engine.parts import Parts, Voice
from cru.engine.round import Reply
from cru.engine.turn import Stop
from cru.events.bus import purpose
from cru.values.messages import Message, Request, Span

TEXTS = ("goals", "todos")


async def ask(parts: Parts, voice: Voice, system: Span, text: str) -> str:
    """What the model answers; "" if it says nothing. Raises NothingToCompact if a handler cancelled the request, Stop if one halted
    there, and ModelError."""
    request = Request(voice.model.name, (system,), (Message("user", text),), (), voice.parameters)
    reply = Reply()
    with purpose("compaction", "cru"):
        announced = await round.announce(parts, request, "", 0)
        if announced.answer.halt:
            raise Stop("halted", announced.answer.reason)
        if announced.answer.stops:
            raise NothingToCompact(f"the request was cancelled: {announced.answer.reason}")
        request = announced.request
        used = voice if request.model == voice.model.name else await parts.choose(request.model)
        request = for_voice(request, used, voice)
        facts: dict[str, Any] = {"upto": parts.store.entries()[-1].id, "messages": request.messages}
        await round.send(parts, used, request, reply, round=0, changed_by=announced.messages_by, **facts)
    return reply.content


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
