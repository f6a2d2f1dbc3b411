"""What `make test` runs of the tests (`--short`); `make test-all` runs all of them.

Three marks say what is left out:

slow: the whole test
sample(n): all but n of its cases, evenly spread, the first and the last among them
pairwise("road", "gate"): of a table with several columns, all but as many rows as every pair of values of two columns needs
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeVar

import pytest

Row = TypeVar("Row")

OPTION = "--short"
LEFT_OUT = ("slow", "long", "soak")


class Short:
    """The plugin; tests/conftest.py registers it and its option."""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if not config.getoption(OPTION):
            return
        kept = set(select(items))
        left_out = [item for item in items if item not in kept]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item in kept]


def select(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that a short run has."""
    tables = defaultdict(list)
    kept = []
    for item in items:
        if any(item.get_closest_marker(name) for name in LEFT_OUT):
            continue
        if item.get_closest_marker("sample") or item.get_closest_marker("pairwise"):
            tables[item.nodeid.partition("[")[0]].append(item)
        else:
            kept.append(item)
    for rows in tables.values():
        pairwise, sample = rows[0].get_closest_marker("pairwise"), rows[0].get_closest_marker("sample")
        if pairwise is not None:
            rows = cover_pairs(rows, [[_value(row, column) for column in pairwise.args] for row in rows])
        if sample is not None:
            rows = spread(rows, sample.args[0])
        kept += rows
    return kept


def spread(rows: Sequence[Row], count: int) -> list[Row]:
    """Return `count` rows (at least 1), evenly spread, with the first and the last."""
    last = len(rows) - 1
    if count > last:
        return list(rows)
    if count == 1:
        return [rows[0]]
    return [rows[number * last // (count - 1)] for number in range(count)]


def cover_pairs(rows: Sequence[Row], values: Sequence[Sequence[object]]) -> list[Row]:
    """Return rows in which every pair of values of two columns occurs that occurs in any row: the greedy cover, the first of equals."""
    pairs = [set(combinations(enumerate(row), 2)) for row in values]
    missing = set().union(*pairs)
    chosen = []
    while missing:
        best = max(range(len(rows)), key=lambda number: (len(pairs[number] & missing), -number))
        chosen.append(best)
        missing -= pairs[best]
    return [rows[number] for number in sorted(chosen)]


def _value(item: pytest.Item, column: str) -> object:
    """Return what stands for the value that a row has in a column; the values of a table need not be hashable."""
    value = item.callspec.params[column]  # type: ignore[attr-defined]
    return value if isinstance(value, str) else id(value)
