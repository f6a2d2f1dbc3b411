"""What MCP servers may want of a session: a person's answers, a text of the model, the folders that the work is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cru.core.api.dialogs.port import show_dialog
from cru.core.api.host import HOST, Host, Plugin, PluginSession
from cru.core.base.values.messages import Message, Request, Span
from cru.core.events.bus import purpose
from cru.core.guard.rules.gate import PermissionSubject
from cru.core.turn import round
from cru.core.turn.calls import permission
from cru.core.turn.parts import Parts
from cru.core.turn.round import ModelReply
from cru.features.mcp import McpError
from cru.features.mcp.ports import Elicitation, FormField, Sample, SamplingRequest

SAMPLING = "mcp_sampling"
"""What rules call a server's request for a text of the model; their glob is tried on the server's name."""
MOST_TOKENS = 16_000
YES, NO = "yes", "no"


class SessionRequests:
    """The ServerRequests of a session."""

    def __init__(self, parts: Parts, home: Path) -> None:
        self._parts = parts
        self._home = home

    def roots(self) -> tuple[Path, ...]:
        return (self._parts.place.root,)

    async def elicit(self, request: Elicitation) -> dict[str, Any] | None:
        """One question a field; a value that does not fit is asked for again."""
        if self._parts.services.face.dialogs is None:
            return None
        token = HOST.set(self._host(request.server))
        try:
            if request.url:
                return await _ask_to_visit(request)
            return await _fill_form(request)
        finally:
            HOST.reset(token)

    async def sample(self, request: SamplingRequest) -> Sample:
        """Raises McpError."""
        await self._permit_sampling(request)
        parts = self._parts
        resolved = await parts.models.choose("")
        messages = tuple(Message("user" if role == "user" else "assistant", text) for role, text in request.messages)
        system = (Span("mcp", f"MCP server {request.server}", request.system),) if request.system else ()
        parameters = {**resolved.parameters, "max_tokens": min(request.max_tokens, MOST_TOKENS)}
        reply = ModelReply()
        with purpose("sampling", f"mcp:{request.server}"):
            announced = await round.announce_request(
                parts.bus, Request(resolved.model.name, system, messages, (), parameters), "", 0
            )
            if announced.answer.stops:
                raise McpError(f"refused: {announced.answer.reason}")
            facts = {"round": 0, "upto": "", "messages": announced.request.messages}
            await round.send_request(parts, resolved, announced.request, reply, **facts)
        return Sample(reply.content, resolved.label)

    async def _permit_sampling(self, request: SamplingRequest) -> None:
        """By a rule, the mode, or a person. Raises McpError."""
        verdict = self._parts.gate.judge(SAMPLING, "tool", request.server)
        if verdict.decision == "allow":
            return
        if verdict.decision == "deny":
            raise McpError(f"not allowed by policy: {verdict.reason}")
        messages = (("system", request.system), *request.messages) if request.system else request.messages
        text = "\n".join(f"{role}: {words}" for role, words in messages)
        why = f"the MCP server {request.server} wants a text of the model, at your cost"
        reply = await permission.ask_person(
            self._parts,
            PermissionSubject(SAMPLING, "tool", request.server, why, f"{SAMPLING}:{request.server}", text),
        )
        if reply is None or reply.choice == "no":
            raise McpError("nobody permits it" if reply is None else "the person refuses")
        self._parts.gate.remember(
            PermissionSubject(SAMPLING, "tool", request.server, rule=f"{SAMPLING}:{request.server}"), reply
        )

    def _host(self, server: str) -> Host:
        return Host(PluginSession(self._parts, self._home), Plugin(f"MCP server {server}", self._home, "mcp"))


async def _ask_to_visit(request: Elicitation) -> dict[str, Any] | None:
    question = f"{request.message}\nVisit {request.url}, then answer {YES}."
    return {} if await _confirm(question) else None


async def _confirm(question: str) -> bool:
    answer = await _ask(question, (YES, NO))
    return answer is not None and answer[0] == [YES]


async def _fill_form(request: Elicitation) -> dict[str, Any] | None:
    """What is left out of what may be left out is no answer to it; without the rest there is none at all."""
    values: dict[str, Any] = {}
    message = request.message
    if not any(field.required for field in request.fields):
        if not await _confirm(message):
            return None
        message = ""
    for field in request.fields:
        title = f"{message}\n{field.title}" if message else field.title
        if not await _fill(values, field, title) and field.required:
            return None
        message = ""
    return values


async def _fill(values: dict[str, Any], field: FormField, title: str) -> bool:
    """Put the person's value of a field into `values`; False if they cancel."""
    choices = field.choices or ((YES, NO) if field.kind == "boolean" else ())
    while (answer := await _ask(title, choices, several=field.kind == "array")) is not None:
        try:
            values[field.name] = _value(field, *answer)
        except ValueError:
            title = f"{field.title} ({field.kind})"
            continue
        return True
    return False


async def _ask(question: str, choices: tuple[str, ...], *, several: bool = False) -> tuple[list[str], str] | None:
    """(chosen, typed), None if the person cancels."""
    entry = {
        "header": "", "question": question, "choices": list(choices), "multi_select": several and bool(choices),
        "allow_other": not choices,
    }  # fmt: skip
    reply = await show_dialog("ask_batch", question, {"id": "", "questions": [entry]})
    if reply is None:
        return None
    first = reply["answers"][0]
    return [choices[number] for number in first.get("selected") or ()], str(first.get("other") or "")


def _value(field: FormField, chosen: list[str], words: str) -> Any:
    """Raises ValueError."""
    match field.kind:
        case "boolean":
            return chosen == [YES]
        case "integer":
            return int(chosen[0] if chosen else words)
        case "number":
            return float(chosen[0] if chosen else words)
        case "array":
            return chosen or [word.strip() for word in words.split(",")]
    return chosen[0] if chosen else words
