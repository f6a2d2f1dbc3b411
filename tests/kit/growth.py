"""A check that the cost of some work grows with its input and not with the square of it, on a machine of any speed and however busy."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from math import inf
from time import process_time
from typing import TypeAlias

TIMES = 8
"""How much larger the larger of the two inputs is."""
MOST = 2.6**3
"""Times the cost of the smaller input, which is 2.6 for each doubling. Linear work costs 8 times as much, sorting 9, quadratic work 64.

A single doubling would leave 2.0, 2.1 and 4.0, too near to each other for a busy machine."""
ROUNDS = 12
RESOLUTION = 50e-6
"""Seconds that are added to both costs, so that two costs near nothing count as equal."""

Work: TypeAlias = Callable[[int], Callable[[], object]]
"""Prepares the input of a size and returns what is measured."""


def growth(work: Work, size: int) -> float:
    """Return how many times as much processor time the work takes for `size` as for an eighth of it.

    The two are measured in turn, and the fastest of each counts, because other programs only ever make a measurement slower. At least
    two rounds are measured, and more while the ratio is above MOST.
    """
    small = large = inf
    for round_number in range(ROUNDS):
        small = min(small, _cost(work(size // TIMES)) + RESOLUTION)
        large = min(large, _cost(work(size // TIMES * TIMES)) + RESOLUTION)
        if round_number and large <= MOST * small:
            break
    return large / small


def assert_linear(work: Work, size: int) -> None:
    """Fail if the cost of `size` is more than MOST times the cost of an eighth of it."""
    ratio = growth(work, size)
    assert ratio <= MOST, f"{size} cost {ratio:.1f} times as much as {size // TIMES}; at most {MOST:.1f} are allowed"


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
