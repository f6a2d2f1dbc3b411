"""What adapters share on the way out: parameters by their OpenAI names as each provider takes them (what it cannot take is named, not
sent), and bytes that are encoded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from cru.values.messages import Message

DEFAULT_MAX_TOKENS = 8192


class ProviderParameters(Struct, frozen=True):
    """The provider's own fields, and the names of parameters that it cannot take."""

    fields: dict[str, Any]
    dropped: tuple[str, ...] = ()


_NOT_FIELDS = ("prompt_caching", "reasoning", "parallel_tool_calls", "tool_choice")


def openai_parameters(parameters: dict[str, Any], provider: str, has_tools: bool) -> ProviderParameters:
    """For OpenAI-compatible servers. Names outside the table (top_k, min_p, …) pass as they are: such servers know their own."""
    fields = {key: value for key, value in parameters.items() if key not in _NOT_FIELDS and value is not None}
    if provider == "openai" and "max_tokens" in fields:
        fields["max_completion_tokens"] = fields.pop("max_tokens")
    if has_tools:
        fields |= {
            key: parameters[key] for key in ("parallel_tool_calls", "tool_choice") if parameters.get(key) is not None
        }
    reasoning = parameters.get("reasoning") or {}
    if not reasoning:
        return ProviderParameters(fields)
    if provider == "openrouter":
        return ProviderParameters({**fields, "reasoning": reasoning})
    if "effort" in reasoning:
        fields["reasoning_effort"] = reasoning["effort"]
    elif reasoning.get("enabled") is False:
        fields["reasoning_effort"] = "none"
    unknown = [key for key in reasoning if key not in ("effort", "enabled")]
    return ProviderParameters(fields, tuple(f"reasoning.{key}" for key in unknown))


_ANTHROPIC_SAME = ("temperature", "top_p", "top_k")
_ANTHROPIC_DONE = (*_ANTHROPIC_SAME, *_NOT_FIELDS, "max_tokens", "stop")
_TOOL_CHOICES = {"auto": "auto", "required": "any", "any": "any", "none": "none"}
_EFFORTS = {"minimal": "low"}
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768}
_BUDGET_MODELS = (
    *("claude-3", "claude-2", "claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-4-1"),
    *("claude-opus-4-0", "claude-sonnet-4-0", "claude-opus-4-2", "claude-sonnet-4-2"),
)
"""Models from before adaptive thinking: they take a budget in tokens, later ones an effort (…-4-2 are dates of 2025)."""


def anthropic_parameters(parameters: dict[str, Any], model: str, has_tools: bool) -> ProviderParameters:
    """For Anthropic's Messages API."""
    fields: dict[str, Any] = {"max_tokens": parameters.get("max_tokens") or DEFAULT_MAX_TOKENS}
    fields |= {key: parameters[key] for key in _ANTHROPIC_SAME if parameters.get(key) is not None}
    if stop := parameters.get("stop"):
        fields["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    if has_tools and (choice := _tool_choice(parameters)):
        fields["tool_choice"] = choice
    dropped = [key for key in parameters if key not in _ANTHROPIC_DONE]
    reasoning = parameters.get("reasoning") or {}
    fields |= _thinking(reasoning, model)
    if (budget := fields.get("thinking", {}).get("budget_tokens", 0)) >= fields["max_tokens"]:
        fields["max_tokens"] += budget  # the API counts thinking as output and wants room beyond it
    if "exclude" in reasoning:
        dropped.append("reasoning.exclude")
    return ProviderParameters(fields, tuple(dropped))


def _tool_choice(parameters: dict[str, Any]) -> dict[str, Any]:
    setting = parameters.get("tool_choice")
    choice: dict[str, Any] = {}
    if isinstance(setting, str):
        choice = {"type": _TOOL_CHOICES.get(setting, "auto")}
    elif isinstance(setting, dict):
        choice = {"type": "tool", "name": setting.get("function", setting).get("name", "")}
    if parameters.get("parallel_tool_calls") is False and choice.get("type") != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    return choice


def _thinking(reasoning: dict[str, Any], model: str) -> dict[str, Any]:
    effort = reasoning.get("effort")
    if effort == "none" or reasoning.get("enabled") is False:
        return {"thinking": {"type": "disabled"}}
    if budget := reasoning.get("max_tokens"):
        return {"thinking": {"type": "enabled", "budget_tokens": max(1024, budget)}}
    if not effort and not reasoning.get("enabled"):
        return {}
    if model.startswith(_BUDGET_MODELS):
        return {"thinking": {"type": "enabled", "budget_tokens": _BUDGETS.get(effort or "medium", 8192)}}
    if not effort:
        return {"thinking": {"type": "adaptive"}}
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORTS.get(effort, effort)}}


_SLACK = 64


class FragmentCache:
    """Bytes of messages by identity. The message is held too, so an id cannot be taken over by another object."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[Message, bytes]] = {}

    def all(self, messages: Sequence[Message]) -> list[bytes]:
        """The bytes of each message, in order; b"" for one that is not sent."""
        known, encode = self._known, self._encode
        fragments = []
        for message in messages:
            entry = known.get(id(message))
            if entry is None:
                entry = known[id(message)] = message, encode(message)
            fragments.append(entry[1])
        if len(known) > 2 * len(messages) + _SLACK:
            self._known = {id(message): known[id(message)] for message in messages}
        return fragments


class LastValue:
    """Remembers the bytes of the last value, compared by equality (system prompt, tools)."""

    def __init__(self) -> None:
        self._value: object = None
        self._bytes = b""

    def get(self, value: object, encode: Callable[[], bytes]) -> bytes:
        if value is not self._value and value != self._value:
            self._value, self._bytes = value, encode()
        return self._bytes
