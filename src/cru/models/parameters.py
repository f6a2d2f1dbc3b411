"""Sampling parameters by their OpenAI names → what each provider takes. What it cannot take is named, not sent."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

DEFAULT_MAX_TOKENS = 8192


class Mapped(Struct, frozen=True):
    """The provider's own fields, and the names of parameters that it cannot take."""

    fields: dict[str, Any]
    dropped: tuple[str, ...] = ()


_NOT_FIELDS = ("prompt_caching", "reasoning", "parallel_tool_calls", "tool_choice")


def openai(parameters: dict[str, Any], provider: str, has_tools: bool) -> Mapped:
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
        return Mapped(fields)
    if provider == "openrouter":
        return Mapped({**fields, "reasoning": reasoning})
    if "effort" in reasoning:
        fields["reasoning_effort"] = reasoning["effort"]
    elif reasoning.get("enabled") is False:
        fields["reasoning_effort"] = "none"
    unknown = [key for key in reasoning if key not in ("effort", "enabled")]
    return Mapped(fields, tuple(f"reasoning.{key}" for key in unknown))


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


def anthropic(parameters: dict[str, Any], model: str, has_tools: bool) -> Mapped:
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
    return Mapped(fields, tuple(dropped))


def _tool_choice(parameters: dict[str, Any]) -> dict[str, Any]:
    wanted = parameters.get("tool_choice")
    choice: dict[str, Any] = {}
    if isinstance(wanted, str):
        choice = {"type": _TOOL_CHOICES.get(wanted, "auto")}
    elif isinstance(wanted, dict):
        choice = {"type": "tool", "name": wanted.get("function", wanted).get("name", "")}
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
