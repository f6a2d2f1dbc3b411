"""The check of growth tells quadratic work from linear work, also where the machine is slow or an answer is cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from tests.kit import growth
from tests.kit.growth import assert_linear


@cache
def cached_square(size: int) -> int:
    return sum(1 for _ in range(size) for _ in range(size))


WORK: dict[str, tuple[Callable[[int], object], bool]] = {
    "constant": (lambda size: 1, True),
    "linear": (lambda size: sum(1 for _ in range(400 * size)), True),
    "sorting": (lambda size: sorted(range(400 * size), key=lambda number: number * 7919 % 10007), True),
    "quadratic in Python": (lambda size: sum(1 for _ in range(size) for _ in range(size)), False),
    "quadratic in C": (
        lambda size: sum(len(text[at:]) for text in ["a" * 60 * size] for at in range(60 * size)),
        False,
    ),
    "quadratic and cached": (cached_square, False),
}


@pytest.mark.parametrize("name", WORK)
def test_only_quadratic_work_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cru.cached_square", cached_square, raising=False)
    action, is_linear = WORK[name]

    def work(size: int) -> Callable[[], object]:
        return lambda: action(size)

    if is_linear:
        assert_linear(work, 600)
    else:
        with pytest.raises(AssertionError, match="times as much"):
            assert_linear(work, 600)


COSTS: dict[str, tuple[list[tuple[int, int]], bool]] = {
    "linear": ([(1, 8)] * 2, True),
    "linear on a machine that is 100 times as slow": ([(100, 800)] * 2, True),
    "linear, each of it twice as slow as it need be": ([(1, 16)] * 2, True),
    "linear but disturbed": ([(1, 40)] * 11 + [(1, 8)], True),
    "quadratic": ([(1, 64)] * 12, False),
    "quadratic, the small one disturbed once": ([(64, 64), *[(1, 64)] * 11], False),
}


@pytest.mark.parametrize("name", COSTS)
def test_the_fastest_measurement_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, is_linear = COSTS[name]
    costs = iter([cost for pair in pairs for cost in pair])
    monkeypatch.setattr(growth, "_cost", lambda action: next(costs))
    assert (growth.growth(lambda size: lambda: None, 100) <= growth.MOST) is is_linear
    assert next(costs, None) is None


def test_the_garbage_collector_is_on_again_after_an_error() -> None:
    import gc

    with pytest.raises(ZeroDivisionError):
        assert_linear(lambda size: lambda: 1 / 0, 100)
    assert gc.isenabled()
