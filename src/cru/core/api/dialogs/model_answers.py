"""Questions for the model, asked beside the conversation: one request, and an answer found in whatever text comes back."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from cru.core.api.dialogs.ask import AskResponse, Batch, ChoiceAnswer, check_batch, question_data
from cru.core.api.host import NamespaceError, host
from cru.core.base.values.messages import Message, Request, Span
from cru.core.events.bus import purpose
from cru.core.models.protocol import ModelError
from cru.core.turn import round
from cru.core.turn.fallback import ask_beside
from cru.core.turn.parts import Parts, ResolvedModel
from cru.core.turn.round import ModelReply

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_PROMPT = """Answer these questions by choosing. Reply with JSON only, one entry a question, indices counted from 0:
{"answers": [{"selected": [0]}, {"other": "words of your own, if no choice fits"}]}

"""


async def agent(questions: Batch) -> AskResponse:
    """ask.agent(batch) -> response, answered by the configured model beside the conversation. A question without a valid choice gets
    its first one. Raises NamespaceError if the model does not answer.

    Example: pcall(cru.ask.agent, cru.ask.batch()) --> false
    """
    batch = check_batch("cru.ask.agent", questions)
    return AskResponse(batch.id(), await ask_model([question_data(question) for question in batch.questions]))


async def ask_model(questions: list[dict[str, object]]) -> tuple[ChoiceAnswer, ...]:
    """The model's answers. To one question without choices plain text is one, too. Raises NamespaceError."""
    asked = "\n\n".join(_question_text(n, question) for n, question in enumerate(questions, 1))
    text = await request_text("cru.ask.agent", _PROMPT + asked)
    try:
        reply = _find_json(text)
    except NamespaceError:
        if len(questions) > 1 or questions[0]["choices"] or not text.strip():
            raise
        return (ChoiceAnswer(other=text.strip()),)
    answers = reply.get("answers") if isinstance(reply, dict) else None
    items = answers if isinstance(answers, list) else []
    return tuple(_read_answer(question, items[n] if n < len(items) else None) for n, question in enumerate(questions))


def _question_text(number: int, question: dict[str, Any]) -> str:
    choices = "".join(f"\n  {n}: {label}" for n, label in enumerate(question["choices"]))
    several = " (several may be chosen)" if question["multi_select"] else ""
    return f"{number}. {question['header']}: {question['question']}{several}{choices}"


def _find_json(text: str) -> object:
    """The first object in a fenced block, or anywhere. Raises NamespaceError if there is none."""
    places = [match[1] for match in _FENCED.finditer(text)]
    if "{" in text:
        places.append(text[text.index("{") : text.rindex("}") + 1])
    for place in places:
        try:
            return msgspec.json.decode(place)
        except (msgspec.DecodeError, RecursionError):
            continue
    raise NamespaceError("cru.ask.agent: the model gave no answer in JSON", f"it said: {text[:200]}")


def _read_answer(question: dict[str, Any], answer: Any) -> ChoiceAnswer:
    """A choice that exists, words of its own, or the first choice."""
    if not isinstance(answer, dict):
        return ChoiceAnswer((0,))
    count = len(question["choices"])
    chosen = answer.get("selected")
    valid = (
        [index for index in chosen if isinstance(index, int) and 0 <= index < count] if isinstance(chosen, list) else []
    )
    if valid:
        return ChoiceAnswer(tuple(valid if question["multi_select"] else valid[:1]))
    other = answer.get("other")
    return ChoiceAnswer(other=other) if isinstance(other, str) and other else ChoiceAnswer((0,))


async def request_text(where: str, prompt: str, system: str = "", model: str = "") -> str:
    """What the model answers; "" is the configured one. `where`: the name that was called. Raises NamespaceError."""
    here = host()
    parts = here.parts
    with purpose("ask", here.plugin.name):
        try:
            resolved = await parts.models.choose(model)
            reply = await ask_beside(parts, resolved, lambda chosen: _ask(where, parts, chosen, prompt, system))
        except ModelError as error:
            raise NamespaceError(f"{where}: {error.message}", error.hint) from error
    return reply.content


async def _ask(where: str, parts: Parts, resolved: ResolvedModel, prompt: str, system: str) -> ModelReply:
    reply = ModelReply()
    spans = (Span("base", where, system),) if system else ()
    request = Request(resolved.model.name, spans, (Message("user", prompt),), (), resolved.parameters)
    announced = await round.announce_request(parts.bus, request, "", 0)
    if announced.answer.stops:
        raise NamespaceError(f"{where}: the request was cancelled: {announced.answer.reason}")
    entries = parts.store.entries()
    facts = {"round": 0, "upto": entries[-1].id if entries else "", "messages": announced.request.messages}
    await round.send_request(parts, resolved, announced.request, reply, **facts)
    return reply
