"""The time of the processor that something takes, whatever the machine: measured against work that is always the same."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

USUAL = 0.014
"""Seconds of the reference on the machine that limits are written for."""


def processor_seconds(action: Callable[[], object]) -> float:
    """Seconds that it takes there. A machine that is faster gets no tighter limits."""
    before = _reference()
    start = process_time()
    action()
    spent = process_time() - start
    return spent / max(1.0, max(before, _reference()) / USUAL)


def _reference() -> float:
    """Seconds for some work of the usual kind: words, lists, dictionaries, objects."""
    start = process_time()
    for _ in range(5):
        words = [f"word{number % 97}" for number in range(5_000)]
        counts: dict[str, list[tuple[str, int]]] = {}
        for place, word in enumerate(words):
            counts.setdefault(word, []).append((word[::-1], place))
        " ".join(words).replace("word", "w").split(" ")
    return process_time() - start
