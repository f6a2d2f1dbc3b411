"""The settings of this room."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from msgspec import Struct


class ContextSettings(Struct, frozen=True):
    """Names and defaults follow chibi's config.toml."""

    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "lock_heartbeat_seconds": (1, 3600),
        "reflection_character_limit": (0, inf),
    }

    username: str = "user"
    lock_heartbeat_seconds: int = 30
    reflection_enabled: bool = True
    reflection_character_limit: int = 10000


DOCS: dict[str, str] = {
    "username": "how you are called in the log and in the system prompt",
    "lock_heartbeat_seconds": "how often the lock of a context in use is refreshed; it counts as stale after 1.5 times this",
    "reflection_enabled": "whether the reflection (notes that the agent keeps across contexts) is part of the system prompt",
    "reflection_character_limit": "the most bytes of UTF-8 that the reflection may have",
}
