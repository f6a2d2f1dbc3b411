"""Receiving a prompt: log it, ask `message:received`, gather what travels with it, log what it became."""

from __future__ import annotations

from collections.abc import Sequence

from cru.contexts.inbox import InboxMessage
from cru.engine import scribe
from cru.engine.parts import Parts
from cru.engine.turn import NextRequest, Prompt, stop_for
from cru.events.answers import Answer
from cru.events.payloads import Attachment, MessageReceived

INBOX_OPEN = "[messages from other contexts]"
INBOX_CLOSE = "[end of messages]"


async def receive(parts: Parts, prompt: Prompt, coming: NextRequest) -> tuple[str, str]:
    """Take a prompt in; returns (entry id, outgoing text). Raises Stop if it was cancelled or halted."""
    ref = prompt.ref or scribe.prompt(parts, prompt).id
    payload = MessageReceived(prompt.text, prompt.attachments, parts.username, ref)
    outcome = await parts.bus.dispatch(payload)
    answer = outcome.answer
    if answer.stops:
        scribe.blocked(parts, ref, answer.reason)
        raise stop_for(answer, "the prompt")
    text = around(answer, outcome.payload.content)
    text = "\n\n".join([*prompt.before, *_attached(text, outcome.payload.attachments), *prompt.after])
    context = [*coming.context, *answer.context, *_files(parts, answer)]
    coming.context.clear()
    with parts.store.inbox() as messages:
        text = _inbox(messages) + text
        scribe.resolved(parts, ref, prompt.text, text, context)
    return ref, text


def around(answer: Answer, text: str) -> str:
    if answer.inject is None:
        return text
    first, second = answer.inject.content, text
    if answer.inject.position == "user_suffix":
        first, second = second, first
    return f"{first}\n\n{second}"


def _attached(text: str, attachments: Sequence[Attachment]) -> list[str]:
    return [text, *(f"--- FILE {a.path} ---\n{a.text}\n--- END OF {a.path} ---" for a in attachments)]


def _inbox(messages: Sequence[InboxMessage]) -> str:
    if not messages:
        return ""
    lines = [f"[From: {m.from_}] {m.content}" for m in messages]
    return "\n".join([INBOX_OPEN, *lines, INBOX_CLOSE]) + "\n\n"


def _files(parts: Parts, answer: Answer) -> list[str]:
    """Context that handlers gave as files, relative to the project root; one that cannot be read is reported."""
    texts = []
    for name in answer.context_files:
        path = parts.root / name
        try:
            texts.append(f"--- FILE {path} ---\n{path.read_text('utf-8', 'replace')}")
        except OSError as error:
            parts.bus.stream.warn(f"context file {path}: {error.strerror}")
    return texts
