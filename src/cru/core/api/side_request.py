"""One request to a model beside the conversation, for a plugin."""

from __future__ import annotations

from cru.core.api.host import NamespaceError, host
from cru.core.base.values.messages import Message, Request, Span
from cru.core.events.bus import purpose
from cru.core.models.protocol import ModelError
from cru.core.turn import round
from cru.core.turn.fallback import ask_beside
from cru.core.turn.parts import Parts, ResolvedModel
from cru.core.turn.round import ModelReply


async def request_text(where: str, prompt: str, system: str = "", model: str = "") -> str:
    """What the model answers; "" is the configured one. `where`: the name that was called. Raises NamespaceError."""
    here = host()
    parts = here.parts
    with purpose("ask", here.plugin.name):
        try:
            resolved = await parts.choose(model)
            reply = await ask_beside(parts, resolved, lambda chosen: _ask(where, parts, chosen, prompt, system))
        except ModelError as error:
            raise NamespaceError(f"{where}: {error.message}", error.hint) from error
    return reply.content


async def _ask(where: str, parts: Parts, resolved: ResolvedModel, prompt: str, system: str) -> ModelReply:
    reply = ModelReply()
    spans = (Span("base", where, system),) if system else ()
    request = Request(resolved.model.name, spans, (Message("user", prompt),), (), resolved.parameters)
    announced = await round.announce_request(parts, request, "", 0)
    if announced.answer.stops:
        raise NamespaceError(f"{where}: the request was cancelled: {announced.answer.reason}")
    entries = parts.store.entries()
    facts = {"round": 0, "upto": entries[-1].id if entries else "", "messages": announced.request.messages}
    await round.send_request(parts, resolved, announced.request, reply, **facts)
    return reply
