"""Settings of the engine: sizes, limits, compaction."""

from __future__ import annotations

from math import inf
from typing import ClassVar, Literal

from msgspec import Struct


class EngineSettings(Struct, frozen=True):
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "context_window_limit": (0, inf),
        "warn_threshold_percent": (0, 100),
        "auto_compact_threshold": (0, 100),
        "rolling_compact_drop_percentage": (0, 100),
        "max_recursion_depth": (0, inf),
        "fuel": (0, inf),
        "max_continuations": (0, inf),
        "max_nested_runs": (0, inf),
    }

    context_window_limit: int = 0
    warn_threshold_percent: float = 80.0
    auto_compact: bool = False
    auto_compact_threshold: float = 80.0
    rolling_compact_drop_percentage: float = 50.0
    compaction_choice: Literal["model", "oldest"] = "model"
    max_recursion_depth: int = 30
    fuel: int = 2000
    max_continuations: int = 200
    no_tool_calls: bool = False
    max_nested_runs: int = 5


DOCS: dict[str, str] = {
    "context_window_limit": "Size of the model's window in tokens; 0 = unknown, sizes are not checked.",
    "warn_threshold_percent": "Warn when the conversation fills this much of the window.",
    "auto_compact": "Summarise the older part of the conversation before it overflows, then go on with the prompt.",
    "auto_compact_threshold": "Fill level in percent at which that happens.",
    "rolling_compact_drop_percentage": "How much of the conversation is summarised then, in percent of its messages.",
    "compaction_choice": "Who chooses what is summarised then: the model, at the price of a request, or the oldest part goes.",
    "max_recursion_depth": "How often a turn may go on by a call of `recurse`.",
    "fuel": "Tool batches and continuations a user prompt may cost; 0 = no limit.",
    "max_continuations": "How often hooks may make the agent go on after one user prompt; 0 = no limit.",
    "no_tool_calls": "Offer the model no tools: requests carry none, and calls that it makes all the same are refused.",
    "max_nested_runs": "How deep runs of cru may start one another through tools, plugins and hooks.",
}
