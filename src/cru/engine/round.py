"""THE choke point for model requests: whatever asks a model, and for whatever purpose, does it here."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cru.engine.parts import Parts, ResolvedModel
from cru.events.answers import Answer
from cru.events.payloads import AgentThinking, MessageBeforeSend, StreamingDelta
from cru.events.scope import check
from cru.events.stamp import FRAME
from cru.models.protocol import BrokenReply, ModelError
from cru.values.deltas import CallPart, End, Text, Thought, ThoughtBlock
from cru.values.messages import Request, Thinking, ToolCall, Usage


class ModelReply(Struct):
    """A reply as it grows; whole once `ended`. Its parts survive an interruption. model is provider:model."""

    text: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    thinking: list[Thinking] = field(default_factory=list)
    parts: dict[int, list[str]] = field(default_factory=dict)
    usage: Usage = Usage()
    reason: str = ""
    ended: bool = False
    model: str = ""

    @property
    def content(self) -> str:
        return "".join(self.text)

    def calls(self, prefix: str) -> tuple[ToolCall, ...]:
        """The calls in the model's order; one without an id, or with one that was used before it, gets its own."""
        made: list[ToolCall] = []
        seen: set[str] = set()
        for index in sorted(self.parts):
            call_id, name, arguments = self.parts[index]
            if not call_id or call_id in seen:
                call_id = f"{prefix}_{index}"
            seen.add(call_id)
            made.append(ToolCall(call_id, name, arguments or "{}"))
        return tuple(made)


class AnnouncedRequest(Struct, frozen=True):
    """What `message:before_send` made of a request. `prompt` is the new outgoing text (first round only), `messages_by` names
    who replaced the messages for this one request ("" = nobody), `model_by` who chose the model."""

    request: Request
    answer: Answer
    prompt: str
    messages_by: str = ""
    by: str = ""
    model_by: str = ""


async def announce_request(parts: Parts, request: Request, prompt: str, number: int) -> AnnouncedRequest:
    """Ask the handlers of `message:before_send`; the request is not made yet."""
    payload = MessageBeforeSend(request.model, request.parameters, request.messages, prompt, number)
    outcome = await parts.bus.dispatch(payload)
    after = outcome.payload
    changed = after.messages is not request.messages and after.messages != request.messages
    if after is not payload:
        request = replace(request, model=after.model, parameters=after.parameters, messages=after.messages)
    return AnnouncedRequest(
        request, outcome.answer, after.prompt, outcome.changed_by("messages") if changed else "", outcome.by,
        outcome.changed_by("model"),
    )  # fmt: skip


async def send_request(parts: Parts, voice: ResolvedModel, request: Request, reply: ModelReply, **facts: Any) -> None:
    """Encode, record, stream. Fills `reply`; raises ModelError. facts: round, upto, and changed messages for the trace."""
    check()
    body = voice.model.encode(request)
    number = parts.recorder.request(
        request, body, provider=voice.model.provider, base_url=voice.base_url,
        purpose=FRAME.get().purpose, **facts,
    )  # fmt: skip
    started = time.perf_counter()
    error = ""
    try:
        await _stream(parts, voice, body, reply)
    except ModelError as raised:
        error = raised.message
        raise
    finally:
        if not reply.ended and not error:
            error = "interrupted"
        took = round((time.perf_counter() - started) * 1000, 2)
        parts.recorder.reply(number, ms=took, usage=reply.usage, reason=reply.reason, error=error)


async def _stream(parts: Parts, voice: ResolvedModel, body: bytes, reply: ModelReply) -> None:
    bus = parts.bus
    quiet = bool(FRAME.get().purpose)
    async with aclosing(voice.model.stream(body)) as deltas:  # an exception in here closes the connection at once
        async for delta in deltas:
            if isinstance(delta, Text):
                reply.text.append(delta.text)
                if not quiet:
                    bus.offer(StreamingDelta(delta.text, len(reply.text)))
            elif isinstance(delta, CallPart):
                _call_part(reply, delta)
            elif isinstance(delta, End):
                reply.usage, reply.reason, reply.ended = delta.usage, delta.reason, True
            elif isinstance(delta, Thought):
                reply.thoughts.append(delta.text)
                if not quiet:
                    bus.offer(AgentThinking(delta.text, len(reply.thoughts)))
            elif isinstance(delta, ThoughtBlock):
                reply.thinking.append(delta.block)
    if not reply.ended:
        raise BrokenReply("the model's reply ended early", "try again")


def _call_part(reply: ModelReply, part: CallPart) -> None:
    known = reply.parts.setdefault(part.index, ["", "", ""])
    known[0] = known[0] or part.id
    known[1] = known[1] or part.name
    known[2] += part.arguments
