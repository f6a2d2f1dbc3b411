"""What a user may set about tools, and what the built-in tools are told."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from msgspec import Struct


class ToolSettings(Struct, frozen=True):
    """Sizes in characters, times in seconds."""

    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "tool_output_cache_threshold": (0, inf),
        "tool_cache_preview_chars": (0, inf),
        "tool_cache_max_age_days": (0, 36_500),
        "bash_timeout": (0, 604_800),
    }

    tool_output_cache_threshold: int = 30_000
    tool_cache_preview_chars: int = 2_000
    tool_cache_max_age_days: int = 7
    auto_cleanup_cache: bool = True
    bash_timeout: float = 120.0


DOCS: dict[str, str] = {
    "tool_output_cache_threshold": "characters from which a tool's output is saved to a file, and the model gets a preview",
    "tool_cache_preview_chars": "how many characters of a saved output the model is shown",
    "tool_cache_max_age_days": "how many days a saved output is kept; it is removed when it is a day older",
    "auto_cleanup_cache": "whether that happens by itself at the end of a run",
    "bash_timeout": "seconds after which a shell command is ended, unless the call says otherwise",
}


class ToolOptions(Struct, frozen=True):
    """What every built-in tool is given besides its arguments.

    settings: of this room
    reflection_limit: bytes
    """

    settings: ToolSettings = ToolSettings()
    reflection_limit: int = 10_000
