"""Parameters by their OpenAI names as Anthropic's Messages API takes them."""

from __future__ import annotations

from cru.core.models.encoding import NOT_FIELDS, ProviderParameters, table_of

DEFAULT_MAX_TOKENS = 8192
_ANTHROPIC_SAME = ("temperature", "top_p", "top_k")
_ANTHROPIC_DONE = (*_ANTHROPIC_SAME, *NOT_FIELDS, "max_tokens", "stop")
_TOOL_CHOICES = {"auto": "auto", "required": "any", "any": "any", "none": "none"}
_EFFORTS = {"minimal": "low"}
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768}
_BUDGET_MODELS = (
    *("claude-3", "claude-2", "claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-4-1"),
    *("claude-opus-4-0", "claude-sonnet-4-0", "claude-opus-4-2", "claude-sonnet-4-2"),
)
"""Models from before adaptive thinking: they take a budget in tokens, later ones an effort (…-4-2 are dates of 2025)."""


def anthropic_parameters(parameters: dict[str, object], model: str, has_tools: bool) -> ProviderParameters:
    """Return them as fields of a request; names that the API does not take are dropped."""
    most = parameters.get("max_tokens") or DEFAULT_MAX_TOKENS
    fields: dict[str, object] = {"max_tokens": most}
    fields |= {key: parameters[key] for key in _ANTHROPIC_SAME if parameters.get(key) is not None}
    if stop := parameters.get("stop"):
        fields["stop_sequences"] = list(stop) if isinstance(stop, list | tuple) else [stop]
    if has_tools and (choice := _tool_choice(parameters)):
        fields["tool_choice"] = choice
    dropped = [key for key in parameters if key not in _ANTHROPIC_DONE]
    reasoning = table_of(parameters.get("reasoning"))
    thinking, budget = _thinking(reasoning, model)
    fields |= thinking
    if isinstance(most, int | float) and budget >= most:
        fields["max_tokens"] = most + budget  # the API counts thinking as output and wants room beyond it
    if "exclude" in reasoning:
        dropped.append("reasoning.exclude")
    return ProviderParameters(fields, tuple(dropped))


def _tool_choice(parameters: dict[str, object]) -> dict[str, object]:
    setting = parameters.get("tool_choice")
    choice: dict[str, object] = {}
    if isinstance(setting, str):
        choice = {"type": _TOOL_CHOICES.get(setting, "auto")}
    elif isinstance(setting, dict):
        choice = {"type": "tool", "name": table_of(setting.get("function", setting)).get("name", "")}
    if parameters.get("parallel_tool_calls") is False and choice.get("type") != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    return choice


def _thinking(reasoning: dict[str, object], model: str) -> tuple[dict[str, object], float]:
    """The fields that say how to think, and the budget in tokens (0: none is set)."""
    effort = reasoning.get("effort")
    if effort == "none" or reasoning.get("enabled") is False:
        return {"thinking": {"type": "disabled"}}, 0
    budget = reasoning.get("max_tokens")
    if isinstance(budget, int | float) and budget:
        budget = max(1024, budget)
    elif not effort and not reasoning.get("enabled"):
        return {}, 0
    elif model.startswith(_BUDGET_MODELS):
        budget = _BUDGETS.get(str(effort or "medium"), 8192)
    elif not effort:
        return {"thinking": {"type": "adaptive"}}, 0
    else:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORTS.get(str(effort), effort)}}, 0
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}, budget
