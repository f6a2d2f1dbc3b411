"""A model request in Gemini's words (its stable hook format: texts only), and what a hook makes of it back in ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cru.events.answers import Change
from cru.events.payloads import MessageBeforeSend
from cru.values.messages import Message

# Theirs → our parameters, which have OpenAI's names.
PARAMETERS: dict[str, str] = {
    "temperature": "temperature", "maxOutputTokens": "max_tokens", "topP": "top_p", "topK": "top_k",
    "stopSequences": "stop", "presencePenalty": "presence_penalty", "frequencyPenalty": "frequency_penalty",
}  # fmt: skip
ROLES = {"user": "user", "assistant": "model"}
NOT_YET = "is not available yet and has no effect"


def to_request(payload: MessageBeforeSend) -> dict[str, Any]:
    """What a hook reads: texts of people and model; calls and their results are left out, as Gemini leaves them out."""
    known = {theirs: payload.parameters[ours] for theirs, ours in PARAMETERS.items() if ours in payload.parameters}
    return {
        "model": payload.model,
        "messages": [to_text_message(one) for one in shown_messages(payload.messages)],
        "config": known,
    }


def shown_messages(messages: Sequence[Message]) -> list[Message]:
    return [one for one in messages if one.role in ROLES and one.content]


def to_text_message(message: Message) -> dict[str, str]:
    return {"role": ROLES[message.role], "content": message.content}


def read_changes(payload: MessageBeforeSend, patch: Mapping[str, Any]) -> tuple[list[Change], list[str]]:
    """The edits that a patch of the request means, and what of it has no effect here."""
    made: list[Change] = []
    odd = [f"llm_request.{key} {NOT_YET}" for key in patch if key not in ("model", "messages", "config")]
    model = patch.get("model")
    if isinstance(model, str) and model and model != payload.model:
        made.append(Change("model", "set", model))
    config = patch.get("config")
    if isinstance(config, Mapping):
        odd += [f"llm_request.config.{key} {NOT_YET}" for key in config if key not in PARAMETERS]
        wanted = {PARAMETERS[key]: value for key, value in config.items() if key in PARAMETERS and value is not None}
        if any(payload.parameters.get(key) != value for key, value in wanted.items()):
            made.append(Change("parameters", "merge", wanted))
    messages = patch.get("messages")
    if isinstance(messages, list):
        after = _messages(payload.messages, messages)
        if after is None:
            odd.append("llm_request.messages: each needs a role and a text")
        elif after != list(payload.messages):
            made.append(Change("messages", "set", after))
    return made, odd


def text(response: Any) -> str | None:
    """The text of an llm_response; None if it has none."""
    if not isinstance(response, Mapping):
        return None
    if isinstance(response.get("text"), str):
        return str(response["text"])
    try:
        parts = response["candidates"][0]["content"]["parts"]
    except (LookupError, TypeError):
        return None
    return "".join(map(str, parts)) if isinstance(parts, list) else None


def _messages(before: Sequence[Message], given: Sequence[Any]) -> list[Message] | None:
    """The messages after a hook. As many as it was shown: texts change where they stand, calls and results stay. More at either
    end: they are added. Anything else replaces the conversation by these texts."""
    read = [_message(one) for one in given]
    if None in read:
        return None
    texts = [one for one in read if one is not None]
    was = shown_messages(before)
    same = [(one.role, one.content) for one in was]
    now = [(one.role, one.content) for one in texts]
    if len(now) == len(same) and [role for role, _ in now] == [role for role, _ in same]:
        new = iter(now)
        return [replace(one, content=next(new)[1]) if one.role in ROLES and one.content else one for one in before]
    if now[: len(same)] == same:
        return [*before, *texts[len(same) :]]
    if same and now[-len(same) :] == same:
        return [*texts[: -len(same)], *before]
    return texts


def _message(one: Any) -> Message | None:
    if not isinstance(one, Mapping):
        return None
    content = one.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    if not isinstance(content, str):
        return None
    return Message("assistant" if one.get("role") == "model" else "user", content)
