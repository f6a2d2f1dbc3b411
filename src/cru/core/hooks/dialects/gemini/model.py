"""A model request in Gemini's words (its stable hook format: texts only), and what a hook makes of it back in ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cru.core.base.values.messages import Message
from cru.core.events.answers import Change
from cru.core.events.payloads import MessageBeforeSend

# Theirs → our parameters, which have OpenAI's names.
PARAMETERS: dict[str, str] = {
    "temperature": "temperature", "maxOutputTokens": "max_tokens", "topP": "top_p", "topK": "top_k",
    "stopSequences": "stop", "presencePenalty": "presence_penalty", "frequencyPenalty": "frequency_penalty",
}  # fmt: skip
ROLES = {"user": "user", "assistant": "model"}
NOT_YET = "is not available yet and has no effect"


def to_request(payload: MessageBeforeSend) -> dict[str, object]:
    """What a hook reads: texts of people and model; calls and their results are left out, as Gemini leaves them out."""
    known = {foreign: payload.parameters[ours] for foreign, ours in PARAMETERS.items() if ours in payload.parameters}
    return {
        "model": payload.model,
        "messages": [to_text_message(message) for message in shown_messages(payload.messages)],
        "config": known,
    }


def shown_messages(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.role in ROLES and message.content]


def to_text_message(message: Message) -> dict[str, str]:
    return {"role": ROLES[message.role], "content": message.content}


def read_changes(payload: MessageBeforeSend, patch: Mapping[str, object]) -> tuple[list[Change], list[str]]:
    """The edits that a patch of the request means, and what of it has no effect here."""
    changes: list[Change] = []
    warnings = [f"llm_request.{key} {NOT_YET}" for key in patch if key not in ("model", "messages", "config")]
    model = patch.get("model")
    if isinstance(model, str) and model and model != payload.model:
        changes.append(Change("model", "set", model))
    config = patch.get("config")
    if isinstance(config, Mapping):
        warnings += [f"llm_request.config.{key} {NOT_YET}" for key in config if key not in PARAMETERS]
        parameters = {
            PARAMETERS[key]: value for key, value in config.items() if key in PARAMETERS and value is not None
        }
        if any(payload.parameters.get(key) != value for key, value in parameters.items()):
            changes.append(Change("parameters", "merge", parameters))
    messages = patch.get("messages")
    if isinstance(messages, list):
        after = _messages(payload.messages, messages)
        if after is None:
            warnings.append("llm_request.messages: each needs a role and a text")
        elif after != list(payload.messages):
            changes.append(Change("messages", "set", after))
    return changes, warnings


def text(response: object) -> str | None:
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


def _messages(before: Sequence[Message], changed: Sequence[object]) -> list[Message] | None:
    """The messages after a hook. As many as it was shown: texts change where they stand, calls and results stay. More at either
    end: they are added. Anything else replaces the conversation by these texts."""
    read = [_message(value) for value in changed]
    if None in read:
        return None
    texts = [message for message in read if message is not None]
    shown = shown_messages(before)
    same = [(message.role, message.content) for message in shown]
    now = [(message.role, message.content) for message in texts]
    if len(now) == len(same) and [role for role, _ in now] == [role for role, _ in same]:
        new = iter(now)
        return [
            replace(message, content=next(new)[1]) if message.role in ROLES and message.content else message
            for message in before
        ]
    if now[: len(same)] == same:
        return [*before, *texts[len(same) :]]
    if same and now[-len(same) :] == same:
        return [*texts[: -len(same)], *before]
    return texts


def _message(value: object) -> Message | None:
    if not isinstance(value, Mapping):
        return None
    content = value.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    if not isinstance(content, str):
        return None
    return Message("assistant" if value.get("role") == "model" else "user", content)
