"""A bar of progress, in characters."""

from __future__ import annotations

FULL, EMPTY = "█", "░"


def bar(value: float, columns: int) -> str:
    """How much of it there is, 0 to 1."""
    full = round(value * columns)
    return FULL * full + EMPTY * (columns - full)
