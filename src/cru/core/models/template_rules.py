"""What chat templates of Mistral want of a conversation. A server says so when it refuses one; loaded when a request fails.

Other servers keep ids and roles as they are: some models want their own ids back, and nothing is made up for them."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.models.protocol import RequestBody, Say

_encode = msgspec.json.encode
_ID_LENGTH = 9
_NO_PROMPT, _NO_ANSWER = "[no prompt]", "[no answer]"
Messages = list[dict[str, Any]]


class _TemplateRule(Struct, frozen=True):
    """One rule of a template.

    refusals: groups of words (lower case); one that has all words of a group means this rule
    apply: returns messages that keep the rule
    """

    refusals: tuple[tuple[str, ...], ...]
    apply: Callable[[Messages], Messages]

    def is_meant(self, refusal: str) -> bool:
        """Return whether a refusal (lower case) means this rule."""
        return any(all(word in refusal for word in words) for words in self.refusals)


def _shorten_ids(messages: Messages) -> Messages:
    """Give calls and their results ids of nine letters and digits. The same id becomes the same one in every request."""
    changed = []
    for message in messages:
        if calls := message.get("tool_calls"):
            message = {**message, "tool_calls": [{**call, "id": _short_id(call["id"])} for call in calls]}
        elif message["role"] == "tool":
            message = {**message, "tool_call_id": _short_id(message["tool_call_id"])}
        changed.append(message)
    return changed


def _short_id(identity: str) -> str:
    if len(identity) == _ID_LENGTH and identity.isascii() and identity.isalnum():
        return identity
    return b32encode(sha256(identity.encode()).digest())[:_ID_LENGTH].decode()


def _alternate(messages: Messages) -> Messages:
    """Put a stand-in where prompts and answers do not alternate. Calls and their results do not count as either."""
    changed: Messages = []
    is_prompt_next = True
    for message in messages:
        if message["role"] in ("user", "assistant") and not message.get("tool_calls"):
            if (message["role"] == "user") != is_prompt_next:
                missing = ("user", _NO_PROMPT) if is_prompt_next else ("assistant", _NO_ANSWER)
                changed.append(dict(zip(("role", "content"), missing, strict=True)))
            is_prompt_next = message["role"] == "assistant"
        changed.append(message)
    return changed


_RULES = (
    _TemplateRule((("tool call id", "length"),), _shorten_ids),
    _TemplateRule((("roles must alternate",), ("unexpected role", "after role")), _alternate),
)
"""Templates of llama.cpp, LM Studio and vLLM, mistral-common, and Mistral's own server (`Tool call id was …`)."""


class TemplateRules:
    """The rules that the chat template behind one server has, as far as its refusals have said."""

    def __init__(self, provider: str, say: Say) -> None:
        self._provider, self._say = provider, say
        self._known: list[_TemplateRule] = []

    def learn(self, refusal: str, body: RequestBody) -> RequestBody | None:
        """Return the request as the refusal wants it. None if it names no rule, or one that the request keeps or that is known."""
        text = refusal.lower()
        for rule in _RULES:
            if rule not in self._known and rule.is_meant(text) and (changed := _rewrite(body, [rule])) is not None:
                self._known.append(rule)
                self._say(
                    f"{self._provider}: the model's chat template refused the conversation; it is sent again in its form"
                )
                return changed
        return None

    def apply(self, body: RequestBody) -> RequestBody:
        """Return a later request as the known rules want it."""
        return (_rewrite(body, self._known) if self._known else None) or body


def _rewrite(body: RequestBody, rules: list[_TemplateRule]) -> RequestBody | None:
    """Return a request with other messages, None if the rules change nothing. All else keeps its bytes."""
    fields = msgspec.json.decode(body.join(), type=dict[str, msgspec.Raw])
    messages = changed = msgspec.json.decode(fields["messages"], type=Messages)
    for rule in rules:
        changed = rule.apply(changed)
    if changed == messages:
        return None
    fields["messages"] = msgspec.Raw(_encode(changed))
    return RequestBody((_encode(fields),))
