"""What a short run leaves out."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import pytest
from tests.kit import short
from tests.kit_tests.test_progress import run

CONFTEST = """
from tests.kit import short
def pytest_addoption(parser):
    parser.addoption(short.OPTION, action="store_true")
def pytest_configure(config):
    config.pluginmanager.register(short.Short())
"""
TESTS = """
import pytest
def test_plain(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.sample(3)
@pytest.mark.parametrize("n", range(9))
def test_sample(n): pass
@pytest.mark.pairwise("road", "gate", "by")
@pytest.mark.parametrize("road", ["a", "b", "c"])
@pytest.mark.parametrize("gate", ["x", "y"])
@pytest.mark.parametrize("by", [int, str])
def test_pairs(road, gate, by): pass
"""


def names(folder: Path, *options: str) -> list[str]:
    lines = run(folder, TESTS, "--collect-only", *options, conftest=CONFTEST)
    return [line.partition("::")[2] for line in lines if "::" in line]


def test_a_short_run_leaves_out_what_is_slow_and_most_of_the_tables(tmp_path: Path) -> None:
    everything, kept = names(tmp_path), names(tmp_path, "--short")
    assert len(everything) == 1 + 1 + 9 + 12
    assert [name for name in kept if not name.startswith("test_pairs")] == [
        "test_plain", "test_sample[0]", "test_sample[4]", "test_sample[8]",
    ]  # fmt: skip
    assert len([name for name in kept if name.startswith("test_pairs")]) == 6


@pytest.mark.parametrize(
    ("rows", "count", "kept"), [(5, 1, [0]), (5, 2, [0, 4]), (5, 3, [0, 2, 4]), (5, 5, [0, 1, 2, 3, 4]), (2, 7, [0, 1])]
)
def test_a_sample_is_spread_evenly(rows: int, count: int, kept: list[int]) -> None:
    assert short.spread(range(rows), count) == kept


def test_the_rows_that_are_kept_have_every_pair_of_values() -> None:
    rows = list(product("abcd", "wxyz", "0123", "+-"))
    kept = short.cover_pairs(rows, rows)
    for one, other in combinations(range(4), 2):
        assert {(row[one], row[other]) for row in kept} == {(row[one], row[other]) for row in rows}
    assert len(kept) < len(rows) / 5


def test_a_pair_that_no_row_has_is_not_asked_for() -> None:
    rows = ["ax", "ay", "bx"]
    assert short.cover_pairs(rows, rows) == rows
