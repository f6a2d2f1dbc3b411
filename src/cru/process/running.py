"""The child processes that nobody has reaped yet: a process that ends in a hurry takes them along."""

from __future__ import annotations

from collections.abc import Callable

RUNNING: dict[int, Callable[[], object]] = {}
"""By process id: what ends the child and all that it started, now."""


def kill_all() -> None:
    """End them all. May be called in any thread."""
    for kill in tuple(RUNNING.values()):
        kill()
