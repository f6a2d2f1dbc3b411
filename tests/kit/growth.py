"""A check that the cost of some work grows with its input and not with the square of it, on a machine of any speed and however busy."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from math import inf
from time import process_time
from typing import TypeAlias

MOST = 2.6
"""Times the cost of half the input. Linear work costs 2.0 times as much, sorting 2.1, quadratic work 4.0."""
ROUNDS = 12
RESOLUTION = 50e-6
"""Seconds that are added to both costs, so that two costs near nothing count as equal."""

Work: TypeAlias = Callable[[int], Callable[[], object]]
"""Prepares the input of a size and returns what is measured."""


def growth(work: Work, size: int) -> float:
    """Return how many times as much processor time the work takes for `size` as for half of it.

    The two are measured in turn, and the fastest of each counts, because other programs only ever make a measurement slower. At least
    two rounds are measured, and more while the ratio is above MOST.
    """
    half = whole = inf
    for round_number in range(ROUNDS):
        half = min(half, _cost(work(size // 2)) + RESOLUTION)
        whole = min(whole, _cost(work(size // 2 * 2)) + RESOLUTION)
        if round_number and whole <= MOST * half:
            break
    return whole / half


def assert_linear(work: Work, size: int) -> None:
    """Fail if the cost of `size` is more than MOST times the cost of half of it."""
    ratio = growth(work, size)
    assert ratio <= MOST, f"{size} cost {ratio:.1f} times as much as {size // 2}; at most {MOST} are allowed"


def _cost(action: Callable[[], object]) -> float:
    """Return the seconds of processor time, without those of the garbage collector and without answers that are cached already."""
    _clear_caches()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = process_time()
        action()
        return process_time() - start
    finally:
        if was_enabled:
            gc.enable()


def _clear_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "cru":
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()
