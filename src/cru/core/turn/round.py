"""THE choke point for model requests: whatever asks a model, and for whatever purpose, does it here. And the requests of a leg:
what `message:before_send` may still change, and what of it stays in the log."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.base.values.cancellation import check
from cru.core.base.values.messages import (
    CallPart,
    End,
    Message,
    Request,
    Span,
    Text,
    Thinking,
    Thought,
    ThoughtBlock,
    ToolCall,
    ToolSpec,
    Usage,
)
from cru.core.events.answers import Answer
from cru.core.events.bus import Bus
from cru.core.events.payloads import AgentThinking, MessageBeforeSend, StreamingDelta
from cru.core.events.stamp import FRAME
from cru.core.models.protocol import BrokenReply, ModelError, NoModel, RequestBody
from cru.core.turn import log_writer
from cru.core.turn.history import BYTES_PER_TOKEN
from cru.core.turn.parts import ModelAccess, Parts, ResolvedModel
from cru.core.turn.prompts import context_texts, place_inject
from cru.core.turn.turn import stop_for

if TYPE_CHECKING:
    from cru.core.base.values.interruptions import Delayed
    from cru.core.turn.fallback import FailedTry

CUT_REASONS = ("length", "content_filter", "refusal")
NO_MEMORY = "no memory is left for the request and its reply"


class ReplyCall(Struct):
    """A call as it grows."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ModelReply(Struct):
    """A reply as it grows; whole once `ended`. Its parts survive an interruption. model is provider:model."""

    text: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    thinking: list[Thinking] = field(default_factory=list)
    parts: dict[int, ReplyCall] = field(default_factory=dict)
    usage: Usage = Usage()  # as the server counted it, with the cost if that is known
    reason: str = ""
    ended: bool = False
    model: str = ""

    @property
    def content(self) -> str:
        return "".join(self.text)

    @property
    def size(self) -> int:
        """Characters of all that came."""
        arguments = sum(len(piece) for part in self.parts.values() for piece in part.arguments)
        return sum(map(len, self.text)) + sum(map(len, self.thoughts)) + arguments

    def forget(self) -> None:
        """Let go of all that came."""
        for pieces in (self.text, self.thoughts, self.thinking, self.parts):
            pieces.clear()

    def calls(self, prefix: str) -> tuple[ToolCall, ...]:
        """The calls in the model's order; one without an id, or with one that was used before it, gets its own."""
        calls: list[ToolCall] = []
        seen: set[str] = set()
        # without arguments, the last call of a reply that was cut is not known to have none: what is no JSON does not run
        empty = {max(self.parts, default=0): "{"} if self.reason in CUT_REASONS else {}
        for index in sorted(self.parts):
            part = self.parts[index]
            call_id = part.id
            if not call_id or call_id in seen:
                call_id = f"{prefix}_{index}"
            seen.add(call_id)
            calls.append(ToolCall(call_id, part.name, "".join(part.arguments) or empty.get(index, "{}")))
        return tuple(calls)


class AnnouncedRequest(Struct, frozen=True):
    """What `message:before_send` made of a request.

    prompt: the new outgoing text (first round only)
    messages_by: who replaced the messages for this one request, "" if nobody did
    by: who decided
    model_by: who chose the model, "" if nobody did
    """

    request: Request
    answer: Answer
    prompt: str
    messages_by: str = ""
    by: str = ""
    model_by: str = ""


async def announce_request(bus: Bus, request: Request, prompt: str, number: int) -> AnnouncedRequest:
    """Ask the handlers of `message:before_send`; the request is not made yet."""
    payload = MessageBeforeSend(request.model, request.parameters, request.messages, prompt, number)
    outcome = await bus.dispatch(payload)
    after = outcome.payload
    inject = outcome.answer.inject
    if inject is not None and inject.model and after.model == request.model:
        after = replace(after, model=inject.model)
    changed = after.messages is not request.messages and after.messages != request.messages
    if after is not payload:
        request = replace(request, model=after.model, parameters=after.parameters, messages=after.messages)
    return AnnouncedRequest(
        request, outcome.answer, after.prompt, outcome.changed_by("messages") if changed else "", outcome.by,
        outcome.changed_by("model") or outcome.by,
    )  # fmt: skip


async def send_request(
    parts: Parts, resolved: ResolvedModel, request: Request, reply: ModelReply, **facts: Any
) -> None:
    """Encode, record, stream. Fills `reply`; raises ModelError. facts: round, upto, and changed messages for the trace."""
    check()
    try:
        await _send(parts, resolved, request, reply, facts)
    except MemoryError:
        reply.forget()  # what is left must be enough to write down how this ended
        error = BrokenReply(NO_MEMORY, "`reply_size_limit` sets how long a reply may be", retryable=False)
        error.others_may_answer = False
        raise error from None


async def _send(
    parts: Parts, resolved: ResolvedModel, request: Request, reply: ModelReply, facts: dict[str, Any]
) -> None:
    excess = 0
    if parts.history.has_images:
        from cru.core.turn.images import with_images

        request, excess = with_images(parts, request)
    body = resolved.model.encode(request)
    number = parts.recorder.request(
        request, body, provider=resolved.model.provider, base_url=resolved.base_url,
        purpose=FRAME.get().purpose, category=resolved.category, **facts,
    )  # fmt: skip
    started = time.perf_counter()
    error = ""
    try:
        await _stream(parts, resolved, body, reply)
    except ModelError as raised:
        error = raised.message
        raise
    except MemoryError:
        error = NO_MEMORY
        raise
    finally:
        if not reply.ended and not error:
            error = "interrupted"
        took = round((time.perf_counter() - started) * 1000, 2)
        usage = _charge(parts.models, resolved, body.size - excess, reply)
        parts.recorder.reply(number, ms=took, usage=usage, reason=reply.reason, error=error)


def _charge(models: ModelAccess, resolved: ResolvedModel, sent: int, reply: ModelReply) -> Usage:
    """Count what a request has cost, also one that broke off. Where the server did not count, tokens are estimated from
    the bytes that were `sent`."""
    usage = counted = reply.usage = _not_negative(reply.usage)
    if not counted.tokens and (size := reply.size):
        usage = replace(counted, input=sent // BYTES_PER_TOKEN, output=-(-size // BYTES_PER_TOKEN), is_estimated=True)
    if resolved.price is not None:
        usage = replace(usage, cost=resolved.price.cost(usage) if usage.tokens else None)
    elif usage.cost is None and usage.tokens and models.ledger.needs_cost:
        from cru.core.models.prices import table_cost

        usage = replace(usage, cost=table_cost(resolved.model.provider, resolved.model.name, resolved.base_url, usage))
    if usage.cost is not counted.cost:
        reply.usage = replace(counted, cost=usage.cost)
    models.ledger.add(usage)
    return usage


def _not_negative(usage: Usage) -> Usage:
    """What a server counted; a number below zero, which would take back what others have cost, as nothing."""
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    if min(counts) >= 0 and (usage.cost is None or usage.cost >= 0):
        return usage
    counted, written, read, cached = (max(count, 0) for count in counts)
    return Usage(counted, written, read, cached, usage.cost if usage.cost is not None and usage.cost >= 0 else None)


async def _stream(parts: Parts, resolved: ResolvedModel, body: RequestBody, reply: ModelReply) -> None:
    bus = parts.bus
    quiet = bool(FRAME.get().purpose)
    async with aclosing(resolved.model.stream(body)) as deltas:  # an exception in here closes the connection at once
        async for delta in deltas:
            if isinstance(delta, Text):
                reply.text.append(delta.text)
                if not quiet:
                    bus.offer(StreamingDelta(delta.text, len(reply.text)))
            elif isinstance(delta, Thought):
                reply.thoughts.append(delta.text)
                if not quiet:
                    bus.offer(AgentThinking(delta.text, len(reply.thoughts)))
            elif _take(reply, delta) and not quiet:
                bus.stream.tell(delta)
    if not reply.ended:
        raise BrokenReply("the model's reply ended early", "try again")


def _take(reply: ModelReply, delta: CallPart | End | ThoughtBlock | Delayed) -> bool:
    """Add what is not shown piece by piece; return whether it is something new to show: the beginning of a call, or a delay."""
    if isinstance(delta, CallPart):
        known = reply.parts.get(delta.index)
        is_first = known is None
        if known is None:
            known = reply.parts[delta.index] = ReplyCall()
        known.id = known.id or delta.id
        known.name += delta.name
        known.arguments.append(delta.arguments)
        return is_first
    if isinstance(delta, End):
        reply.usage, reply.reason, reply.ended = delta.usage, delta.reason, True
        return False
    if isinstance(delta, ThoughtBlock):
        reply.thinking.append(delta.block)
        return False
    return True


class RequestPlan(Struct):
    """What the requests of a leg have in common.

    ref: the log entry of the prompt
    text: the outgoing prompt
    fresh: it is the first round of a prompt that was received just now, so the prompt may still change
    context: what `message:received` put beside the prompt
    round: counts from 1
    asked: the model of the last request, which a handler may have chosen
    tries: models that failed in this round
    """

    resolved: ResolvedModel
    spans: tuple[Span, ...]
    tools: tuple[ToolSpec, ...]
    ref: str
    text: str
    fresh: bool
    context: tuple[str, ...] = ()
    round: int = 0
    asked: ResolvedModel | None = None
    tries: list[FailedTry] = field(default_factory=list)


async def ask_model(parts: Parts, plan: RequestPlan, reply: ModelReply) -> str:
    """Announce, record and send one request; fills `reply`, returns provider:model. Raises TurnStopped and ModelError."""
    resolved, before = plan.resolved, parts.history.messages()
    request = Request(resolved.model.name, plan.spans, before, plan.tools, resolved.parameters)
    announced = await announce_request(parts.bus, request, plan.text if plan.fresh else "", plan.round)
    if announced.answer.stops:
        raise stop_for(announced.answer, "the request")
    if announced.request.model != resolved.model.name:
        resolved = await _choose(parts.models, announced)
    if plan.tries:
        from cru.core.turn.fallback import choose_next

        resolved = await choose_next(parts, resolved, plan.tries) or resolved
    plan.asked = resolved
    request = adapt_request(announced.request, resolved, plan.resolved)
    if _log_additions(parts, plan, announced):
        request = replace(request, messages=_merge_logged(request.messages, before, parts.history.messages(), plan.ref))
    facts: dict[str, Any] = {"round": plan.round, "upto": parts.store.entries()[-1].id}
    if announced.messages_by:
        facts.update(messages=request.messages, changed_by=announced.messages_by)
        parts.bus.stream.warn(
            f"{announced.messages_by} replaced the messages: the prompt cache breaks here", announced.messages_by
        )
    reply.model = resolved.label
    await send_request(parts, resolved, request, reply, **facts)
    return resolved.label


async def _choose(models: ModelAccess, announced: AnnouncedRequest) -> ResolvedModel:
    """The model that a handler chose. Raises NoModel, which names it."""
    try:
        return await models.choose(announced.request.model)
    except NoModel as error:
        raise NoModel(f"{announced.model_by} chose a model that there is not: {error.message}", error.hint) from error


def adapt_request(request: Request, resolved: ResolvedModel, planned: ResolvedModel) -> Request:
    """Another model brings its own parameters, unless a handler set them too."""
    if resolved is planned:
        return request
    own = resolved.parameters if request.parameters == planned.parameters else request.parameters
    return replace(request, model=resolved.model.name, parameters=own)


def _log_additions(parts: Parts, plan: RequestPlan, announced: AnnouncedRequest) -> bool:
    """Log what `message:before_send` added, so that it stays: beside the prompt first, later as a message of its own."""
    answer = announced.answer
    texts = context_texts(parts, answer)
    if plan.fresh:
        text = place_inject(answer, announced.prompt)
        if text == plan.text and not texts:
            return False
        log_writer.resolved_again(parts, plan.ref, text, [*plan.context, *texts])
        return True
    if announced.prompt:
        parts.bus.stream.warn("message:before_send: the prompt can only be changed in the first round", announced.by)
    if answer.inject is not None:
        texts.append(answer.inject.content)
    if texts:
        log_writer.inject(parts, "\n\n".join(texts))
    return bool(texts)


def _merge_logged(
    now: tuple[Message, ...], before: tuple[Message, ...], after: tuple[Message, ...], ref: str
) -> tuple[Message, ...]:
    """The messages with what was logged just now; `now` differs from `before` if a handler replaced them."""
    if now is before or now == before:
        return after
    news = {m.ref: m for m in after[len(before) :]} or {m.ref: m for m in after if m.ref == ref}
    kept = [news.pop(m.ref, m) for m in now]
    return (*kept, *news.values())
