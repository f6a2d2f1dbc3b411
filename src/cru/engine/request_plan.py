"""One request of a leg: what `message:before_send` may still change, and what of it stays in the log."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cru.engine import log_writer, pending, receive, round
from cru.engine.parts import Parts, ResolvedModel
from cru.engine.round import AnnouncedRequest, ModelReply
from cru.engine.turn import stop_for
from cru.models.protocol import NoModel
from cru.values.messages import Message, Request, Span, ToolSpec


class RequestPlan(Struct):
    """What the requests of a leg have in common. `fresh`: it is the first round of a prompt that was received just now, so the
    prompt may still change; `beside` is the context that `message:received` put beside it."""

    voice: ResolvedModel
    spans: tuple[Span, ...]
    tools: tuple[ToolSpec, ...]
    ref: str
    text: str
    fresh: bool
    beside: tuple[str, ...] = ()
    round: int = 0


async def ask_model(parts: Parts, plan: RequestPlan, reply: ModelReply) -> str:
    """Announce, record and send one request; fills `reply`, returns provider:model. Raises Stop and ModelError."""
    voice, before = plan.voice, parts.history.messages()
    request = Request(voice.model.name, plan.spans, before, plan.tools, voice.parameters)
    said = await round.announce_request(parts, request, plan.text if plan.fresh else "", plan.round)
    if said.answer.stops:
        raise stop_for(said.answer, "the request")
    if said.request.model != voice.model.name:
        voice = await _chosen(parts, said)
    request = adapt_request(said.request, voice, plan.voice)
    if _beside(parts, plan, said):
        request = replace(request, messages=_merged(request.messages, before, parts.history.messages(), plan.ref))
    facts: dict[str, Any] = {"round": plan.round, "upto": parts.store.entries()[-1].id}
    if said.messages_by:
        facts.update(messages=request.messages, changed_by=said.messages_by)
        parts.bus.stream.warn(
            f"{said.messages_by} replaced the messages: the prompt cache breaks here", said.messages_by
        )
    label = f"{voice.model.provider}:{voice.model.name}"
    reply.model = label
    await round.send_request(parts, voice, request, reply, **facts)
    return label


async def _chosen(parts: Parts, said: AnnouncedRequest) -> ResolvedModel:
    """The model that a handler chose. Raises NoModel, which names it."""
    try:
        return await parts.choose(said.request.model)
    except NoModel as error:
        raise NoModel(f"{said.model_by} chose a model that there is not: {error.message}", error.hint) from error


def adapt_request(request: Request, voice: ResolvedModel, planned: ResolvedModel) -> Request:
    """Another model brings its own parameters, unless a handler set them too."""
    if voice is planned:
        return request
    own = voice.parameters if request.parameters == planned.parameters else request.parameters
    return replace(request, model=voice.model.name, parameters=own)


def _beside(parts: Parts, plan: RequestPlan, said: AnnouncedRequest) -> bool:
    """Log what `message:before_send` added, so that it stays: beside the prompt first, later as a message of its own."""
    answer = said.answer
    texts = pending.context_texts(parts, answer)
    if plan.fresh:
        text = receive.place_inject(answer, said.prompt)
        if text == plan.text and not texts:
            return False
        log_writer.resolved_again(parts, plan.ref, text, [*plan.beside, *texts])
        return True
    if said.prompt:
        parts.bus.stream.warn("message:before_send: the prompt can only be changed in the first round", said.by)
    if answer.inject is not None:
        texts.append(answer.inject.content)
    if texts:
        log_writer.inject(parts, "\n\n".join(texts))
    return bool(texts)


def _merged(
    now: tuple[Message, ...], before: tuple[Message, ...], after: tuple[Message, ...], ref: str
) -> tuple[Message, ...]:
    """The messages with what was logged just now; `now` differs from `before` if a handler replaced them."""
    if now is before or now == before:
        return after
    news = {m.ref: m for m in after[len(before) :]} or {m.ref: m for m in after if m.ref == ref}
    kept = [news.pop(m.ref, m) for m in now]
    return (*kept, *news.values())
