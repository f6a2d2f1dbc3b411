"""`pre_api_request`: the request as a provider would get it, and what of an answer finds its way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cru.core.base.values.messages import Message, ToolCall, system_text
from cru.core.events.answers import PASS, Answer, Change
from cru.core.events.payloads import MessageBeforeSend
from cru.core.events.stamp import Event
from cru.core.plugins.executables.hooks.hook import HookAnswerContext, LegFacts
from cru.core.plugins.executables.hooks.payloads import fuel_fields

OWN = ("model", "messages", "tools", "stream")
ROLES = ("user", "assistant", "tool")


def is_meant(event: Event[MessageBeforeSend], facts: LegFacts) -> bool:
    """The requests of prompts and continuations, and not those for summaries."""
    return not event.stamp.purpose


def is_later(event: Event[MessageBeforeSend], facts: LegFacts) -> bool:
    """Not the first of its prompt or continuation."""
    return event.payload.round > 1


def api_request(event: Event[MessageBeforeSend], facts: LegFacts) -> dict[str, object]:
    return {
        "context_name": facts.parts.store.name,
        "request_body": request_body(event, facts),
        **fuel_fields(facts, facts.fuel),
    }


def request_body(event: Event[MessageBeforeSend], facts: LegFacts) -> dict[str, object]:
    functions = [
        {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
        for spec in facts.parts.tools.specs(facts.tools)
    ]
    return {
        **event.payload.parameters, "model": event.payload.model,
        "messages": [{"role": "system", "content": system_text(facts.sections)}, *map(_shown, event.payload.messages)],
        "tools": [{"type": "function", "function": function} for function in functions], "stream": True,
    }  # fmt: skip


def _shown(message: Message) -> dict[str, object]:
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in message.calls
    ]
    more = {"tool_calls": calls} if calls else {}
    return {
        "role": message.role,
        "content": message.content,
        **more,
        **({"tool_call_id": message.call_id} if message.call_id else {}),
    }


def change_request(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """`{"request_body": {…}}`: what it changes of `model` and of parameters holds for all requests of the prompt, of `messages` for
    this one"""
    body = answer.get("request_body")
    if body is None:
        return PASS
    if not isinstance(body, Mapping):
        context.problems.append("`request_body` is no object and is left out")
        return PASS
    before: dict[str, Any] = request_body(context.event, context.facts)
    changes: list[Change] = []
    new = {key: value for key, value in body.items() if key not in before or before[key] != value}
    if isinstance(new.get("model"), str):
        changes.append(Change("model", "set", new["model"]))
    if "messages" in new:
        changes += _messages(context, before["messages"], new["messages"])
    if "tools" in new:
        context.problems.append(
            "`tools` of the request are chosen with pre_api_tools; what it says about them is left out"
        )
    parameters = {key: value for key, value in new.items() if key not in OWN}
    if parameters:
        changes.append(Change("parameters", "merge", parameters))
    return Answer(changes=tuple(changes)) if changes else PASS


def _messages(context: HookAnswerContext, shown: Sequence[Mapping[str, Any]], changed: object) -> list[Change]:
    """Those that it left alone stay what they are, with their thinking; the others are read."""
    payload = context.event.payload
    sent = payload.messages if isinstance(payload, MessageBeforeSend) else ()
    if not isinstance(changed, list) or not all(_is_message(message) for message in changed):
        context.problems.append("`messages` cannot be read and are left out")
        return []
    if any(message["role"] == "system" and message != shown[0] for message in changed):
        context.problems.append("the system prompt is changed with pre_system_prompt and post_system_prompt")
    unchanged = list(zip(shown[1:], sent, strict=True))
    messages: list[Message] = []
    for message in changed:
        same = next((pair for pair in unchanged if pair[0] == message), None)
        if same is not None:
            unchanged.remove(same)
            messages.append(same[1])
        elif message["role"] != "system":
            messages.append(_message(message))
    return [Change("messages", "set", messages)] if tuple(messages) != payload.messages else []


def _is_message(message: object) -> bool:
    if not isinstance(message, Mapping) or message.get("role") not in (*ROLES, "system"):
        return False
    calls = message.get("tool_calls") or []
    return (
        isinstance(message.get("content") or "", str)
        and isinstance(message.get("tool_call_id") or "", str)
        and isinstance(calls, list)
        and all(isinstance(call, Mapping) and isinstance(call.get("function"), Mapping) for call in calls)
    )


def _message(fields: Mapping[str, Any]) -> Message:
    calls = [
        ToolCall(str(c.get("id", "")), str(c["function"].get("name", "")), str(c["function"].get("arguments", "{}")))
        for c in fields.get("tool_calls") or []
    ]
    return Message(fields["role"], fields.get("content") or "", tuple(calls), fields.get("tool_call_id") or "")
