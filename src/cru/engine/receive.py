"""Receiving a prompt: ask `message:received`, gather what travels with it, log what it became."""

from __future__ import annotations

from collections.abc import Sequence

from cru.contexts.inbox import InboxMessage
from cru.engine import log_writer, pending
from cru.engine.parts import Parts
from cru.engine.turn import PendingContext, Prompt, stop_for
from cru.events.answers import Answer
from cru.events.payloads import Attachment, MessageReceived

INBOX_OPEN = "[messages from other contexts]"
INBOX_CLOSE = "[end of messages]"


async def receive_prompt(parts: Parts, prompt: Prompt, ref: str, coming: PendingContext) -> tuple[str, tuple[str, ...]]:
    """Take in a prompt that is in the log as `ref`; returns the outgoing text and the context beside it. Raises Stop if it was
    cancelled or halted."""
    payload = MessageReceived(prompt.text, prompt.attachments, parts.username, ref)
    outcome = await parts.bus.dispatch(payload)
    answer = outcome.answer
    if answer.stops:
        log_writer.blocked(parts, ref, answer.reason)
        raise stop_for(answer, "the prompt")
    text = place_inject(answer, outcome.payload.content)
    text = "\n\n".join([*prompt.before, *_attached(text, outcome.payload.attachments), *prompt.after])
    context = (*coming.context, *pending.context_texts(parts, answer))
    with parts.store.inbox() as messages:
        text = _inbox(messages) + text
        log_writer.resolved(parts, ref, prompt.text, text, context)
    for problem in parts.store.refresh():  # lines of the inbox that are no messages
        parts.bus.stream.warn(f"{parts.store.folder / problem.file}:{problem.line}: {problem.message}")
    coming.context.clear()
    return text, context


def place_inject(answer: Answer, text: str) -> str:
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
