from __future__ import annotations

from email.utils import formatdate

import pytest

from cru.core.models import failures


@pytest.mark.parametrize(
    ("status", "again"),
    [(200, False), (400, False), (404, False), (408, True), (409, True), (429, True), (500, True), (529, True)],
)
def test_only_what_may_pass_is_tried_again(status: int, again: bool) -> None:
    assert failures.is_retryable_status(status) is again


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("", None), ("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("3600", 60.0), ("soon", None), ("nan", None), ("inf", 60.0)],
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    assert failures.delay_asked_for({"retry-after": value}, 0.0) == seconds


def test_retry_after_as_a_date() -> None:
    now = 1_700_000_000.0
    assert failures.delay_asked_for({"retry-after": formatdate(now + 20, usegmt=True)}, now) == 20.0
    assert failures.delay_asked_for({"retry-after": formatdate(now - 20, usegmt=True)}, now) == 0.0
    assert failures.delay_asked_for({}, now) is None


def test_waits_double_up_to_a_cap_and_jitter_only_shortens() -> None:
    assert [failures.delay_before_retry(attempt, None, 0.0) for attempt in range(6)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert failures.delay_before_retry(0, None, 1.0) == 0.25
    assert failures.delay_before_retry(0, 7.0, 1.0) == 7.0
