"""Which known name is suggested for an unknown one."""

from __future__ import annotations

import pytest

from cru.core.base.config.closest import closest, did_you_mean, distance

KNOWN = ("model", "mode", "base_url", "api_key", "context_window_limit", "tool:before_call", "tool:called")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("modle", "model"),
        ("MODEL", "model"),
        ("mod", "mode"),
        ("base_ulr", "base_url"),
        ("baseurl", "base_url"),
        ("api-key", "api_key"),
        ("context_window", "context_window_limit"),
        ("tool:before", "tool:before_call"),
        ("tool:caled", "tool:called"),
        ("", None),
        ("zzz", None),
        ("entirely_else", None),
    ],
)
def test_the_nearest_name_is_suggested_and_nothing_far_away(word: str, name: str | None) -> None:
    assert closest(word, KNOWN) == name


@pytest.mark.parametrize(
    ("a", "b", "steps"), [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("kitten", "sitting", 3), ("model", "modle", 1)]
)
def test_distance_counts_edits_and_swaps(a: str, b: str, steps: int) -> None:
    assert distance(a, b) == distance(b, a) == steps


def test_the_hint_is_empty_when_nothing_is_near() -> None:
    assert did_you_mean("modle", KNOWN) == "did you mean `model`?"
    assert did_you_mean("xyz", KNOWN) == ""
    assert closest("a", ()) is None
