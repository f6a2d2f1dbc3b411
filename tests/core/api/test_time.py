"""timer, spawn, schedule, retry, ratelimit: things that take time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.kit.waiting import PATIENCE

from cru.core.api import health, schedule, timing
from cru.core.api.host import BadArgument, NamespaceError, host
from cru.core.api.timing import retry
from cru.core.events.stamp import FRAME, TOP, Frame


def test_sleep_waits_and_lets_others_run(tmp_path: Path) -> None:
    order: list[str] = []

    async def sleeper() -> None:
        order.append("sleeps")
        await timing.sleep(0.03)
        order.append("woke")

    async def main() -> None:
        await asyncio.gather(*(sleeper() for _ in range(20)))

    Room(tmp_path)(main)
    assert order == ["sleeps"] * 20 + ["woke"] * 20


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1", None, True])
def test_sleep_refuses_what_is_no_time(tmp_path: Path, seconds: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.timer\.sleep: seconds"):
        Room(tmp_path)(timing.sleep, seconds)


async def slow() -> None:
    await asyncio.sleep(5)


async def times_out_itself() -> None:
    raise TimeoutError("its own")


def fails() -> None:
    raise NamespaceError("no luck", "try later")


TIMEOUTS: list[tuple[Callable[[], Any], tuple[Any, Any]]] = [
    (lambda: 7, (True, 7)),
    (lambda: None, (True, None)),
    (fails, (False, "no luck")),
    (slow, (False, "timeout")),
    (times_out_itself, (False, "its own")),
]


@pytest.mark.parametrize(("work", "result"), TIMEOUTS)
def test_timeout_returns_what_came_of_it(tmp_path: Path, work: Callable[[], Any], result: tuple[Any, Any]) -> None:
    assert Room(tmp_path)(timing.timeout, 0.05, work) == result


def test_a_cancelled_timeout_is_cancelled(tmp_path: Path) -> None:
    async def main() -> bool:
        task = asyncio.ensure_future(timing.timeout(5, slow))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert Room(tmp_path)(main) is True


def test_the_clock_never_goes_back() -> None:
    first = timing.clock()
    assert timing.clock() >= first


def test_spawn_runs_beside_and_reports_what_fails(tmp_path: Path) -> None:
    room, seen = Room(tmp_path), []

    async def work() -> None:
        seen.append((host().plugin.name, FRAME.get()))
        raise ValueError("oops")

    async def main() -> None:
        FRAME.set(Frame(frozenset({"demo"}), 3, 9))
        assert schedule.spawn(work) is None  # type: ignore[func-returns-value]
        assert not seen
        await asyncio.sleep(0.01)

    room(main)
    assert seen == [("demo", TOP)]
    assert room.notices()[-1] == "demo: spawned function: oops"
    (recent,) = room(health.recent_errors)
    assert (recent["plugin"], recent["error"], recent["context"]) == ("demo", "oops", "spawned function")
    assert recent["age_secs"] >= 0


def test_what_was_spawned_ends_with_the_session(tmp_path: Path) -> None:
    room, ended = Room(tmp_path), []

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(True)

    async def main() -> None:
        schedule.spawn(work)
        await asyncio.sleep(0.01)

    room(main)
    assert ended == [True]


@pytest.mark.parametrize("opts", [0.02, {"every": 0.02}, {"interval": 0.02}])
def test_a_schedule_ticks_first_after_one_interval_until_it_is_cancelled(tmp_path: Path, opts: Any) -> None:
    ticks: list[str] = []

    async def main() -> None:
        handle = schedule.schedule(opts, lambda: ticks.append(host().plugin.name))
        assert isinstance(handle, int)
        await asyncio.sleep(0.01)
        assert not ticks
        await asyncio.sleep(0.1)
        assert schedule.cancel(handle) is True
        assert schedule.cancel(handle) is False
        count = len(ticks)
        assert count >= 2
        await asyncio.sleep(0.05)
        assert len(ticks) == count

    Room(tmp_path)(main)
    assert set(ticks) == {"demo"}


def test_a_failing_tick_is_reported_and_the_next_one_comes(tmp_path: Path) -> None:
    room, ticks = Room(tmp_path), []

    def work() -> None:
        ticks.append(1)
        raise ValueError("tick")

    async def main() -> None:
        schedule.schedule(0.01, work)
        await asyncio.sleep(0.5)

    room(main)
    assert 2 <= len(ticks) <= 3, "0.05 s, and twice as long each time it fails"
    told = [notice for notice in room.notices() if "tick" in notice]
    again = "once more" if len(ticks) == 2 else "2 more times"
    assert told == ["demo: scheduled function: tick", f"demo: scheduled function: it failed {again}: tick"]


def test_a_schedule_that_recovers_says_how_often_it_failed(tmp_path: Path) -> None:
    room, ticks = Room(tmp_path), []

    def work() -> None:
        ticks.append(1)
        if len(ticks) < 3:
            raise ValueError("no net")

    async def main() -> None:
        schedule.schedule(0.05, work)
        while len(ticks) < 4:
            await asyncio.sleep(0.01)

    room(main)
    assert [notice for notice in room.notices() if "net" in notice] == [
        "demo: scheduled function: no net",
        "demo: scheduled function: it failed once more: no net",
    ]


def test_nothing_is_scheduled_more_often_than_every_twentieth_of_a_second(tmp_path: Path) -> None:
    ticks: list[int] = []

    async def main() -> None:
        schedule.schedule(1e-9, lambda: ticks.append(1))
        await asyncio.sleep(0.3)

    Room(tmp_path)(main)
    assert 1 <= len(ticks) <= 6


def test_at_most_256_schedules_are_live(tmp_path: Path) -> None:
    async def main() -> None:
        handles = [schedule.schedule(60, fails) for _ in range(schedule.MOST)]
        with pytest.raises(NamespaceError, match="256 schedules"):
            schedule.schedule(60, fails)
        schedule.cancel(handles[0])
        assert schedule.schedule(60, fails) == 257

    Room(tmp_path)(main)


@pytest.mark.parametrize("opts", [0, -1, {}, None, "1", {"every": float("inf")}])
def test_a_schedule_needs_an_interval(tmp_path: Path, opts: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.schedule"):
        Room(tmp_path)(schedule.schedule, opts, fails)


class Flaky:
    """Fails so many times, then gives its count."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures, self.error, self.count = failures, error, 0

    def __call__(self) -> int:
        self.count += 1
        if self.count <= self.failures:
            raise self.error
        return self.count


def test_retry_tries_again_until_it_works(tmp_path: Path) -> None:
    assert Room(tmp_path)(retry, Flaky(2, ValueError("x")), {"base_delay": 0.001}) == 3


def test_retry_raises_the_last_error_after_max_retries(tmp_path: Path) -> None:
    work = Flaky(99, ValueError("always"))
    with pytest.raises(ValueError, match="always"):
        Room(tmp_path)(retry, work, {"max_retries": 2, "base_delay": 0.001})
    assert work.count == 3
    with pytest.raises(ValueError, match="always"):
        Room(tmp_path)(retry, work, {"max_retries": 0})
    assert work.count == 4


def test_retry_asks_whether_an_error_is_worth_it(tmp_path: Path) -> None:
    work, asked = Flaky(99, NamespaceError("fatal")), []

    def retryable(error: Any) -> bool:
        asked.append(error)
        return len(asked) < 2

    with pytest.raises(NamespaceError, match="fatal"):
        Room(tmp_path)(retry, work, {"base_delay": 0.001, "retryable": retryable})
    assert asked == ["fatal", "fatal"]
    assert work.count == 2


class TableError(Exception):
    """As an error of Lua that is a table."""

    def __init__(self, original: Any) -> None:
        super().__init__("a table")
        self.original = original


WAITS: list[tuple[dict[str, Any], Exception, list[tuple[float, float]]]] = [
    ({"base_delay": 0.02, "jitter": False}, ValueError(), [(0.02, 0.02), (0.04, 0.04)]),
    ({"base_delay": 0.02}, ValueError(), [(0.01, 0.02), (0.02, 0.04)]),
    ({"base_delay": 9, "max_delay": 0.01, "jitter": False}, ValueError(), [(0.01, 0.01)] * 2),
    ({"base_delay": 0, "max_delay": 0.01}, TableError({"after": 0.05}), [(0.05, 0.05)] * 2),
]


@pytest.mark.parametrize(("opts", "error", "expected"), WAITS)
def test_retry_waits_longer_each_time(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opts: dict[str, Any],
    error: Exception,
    expected: list[tuple[float, float]],
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(timing, "asyncio", SimpleNamespace(sleep=sleep))
    Room(tmp_path)(retry, Flaky(2, error), opts)
    assert len(waits) == len(expected)
    assert all(least <= wait <= most for wait, (least, most) in zip(waits, expected, strict=True))


@pytest.mark.parametrize("opts", [{"max_retries": -1}, {"max_retries": 1.5}, {"base_delay": "x"}, {"max_delay": -1}])
def test_retry_refuses_bad_options(tmp_path: Path, opts: dict[str, Any]) -> None:
    with pytest.raises(BadArgument, match=r"cru\.retry"):
        Room(tmp_path)(retry, fails, opts)
    with pytest.raises(BadArgument, match="fn must be a function"):
        Room(tmp_path)(retry, None)


def test_a_bucket_starts_full_and_fills_with_time(tmp_path: Path) -> None:
    async def main() -> None:
        bucket = timing.new_bucket({"capacity": 2, "interval": 0.01})
        assert [bucket.remaining(), bucket.try_acquire(), bucket.try_acquire()] == [2, True, True]
        await asyncio.sleep(0.05)
        assert bucket.remaining() == 2

    Room(tmp_path)(main)


def test_an_empty_bucket_is_waited_for_until_it_has_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> bool:
        waits.append(seconds)
        return True

    async def main() -> None:
        bucket = timing.new_bucket({"capacity": 2, "interval": 3600})
        assert [bucket.try_acquire() for _ in range(3)] == [True, True, False]
        await bucket.acquire()
        await bucket.acquire()
        assert bucket.remaining() == 0

    monkeypatch.setattr(timing, "wait", wait)
    Room(tmp_path)(main)
    assert len(waits) == 2 and all(3600 - PATIENCE < seconds <= 3600 for seconds in waits)


@pytest.mark.parametrize("opts", [{"capacity": 0}, {"capacity": "x"}, {"interval": 0}, {"interval": -1}, "x"])
def test_a_bucket_refuses_bad_options(tmp_path: Path, opts: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.ratelimit\.new"):
        Room(tmp_path)(timing.new_bucket, opts)
    assert Room(tmp_path)(timing.new_bucket).remaining() == 5
