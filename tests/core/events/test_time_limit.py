"""A time limit behaves like asyncio.timeout, and all limits of a loop share one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

import pytest

from cru.core.base.values.cancellation import TimeLimit


async def _expire() -> None:
    with TimeLimit(0.001):
        await asyncio.sleep(30)


async def _expire_at_once() -> None:
    with TimeLimit(0):
        await asyncio.sleep(30)


async def _expire_behind_a_longer_one() -> None:
    with TimeLimit(30):
        with TimeLimit(0.001):
            await asyncio.sleep(30)


async def _expire_around_a_longer_one() -> None:
    with TimeLimit(0.001):
        with TimeLimit(30):
            await asyncio.sleep(30)


async def _expire_after_an_earlier_one_was_kept() -> None:
    with TimeLimit(0.001):
        await asyncio.sleep(0)
    with TimeLimit(0.002):
        await asyncio.sleep(30)


@pytest.mark.parametrize(
    "run",
    [
        _expire,
        _expire_at_once,
        _expire_behind_a_longer_one,
        _expire_around_a_longer_one,
        _expire_after_an_earlier_one_was_kept,
    ],
)
def test_what_takes_longer_raises_timeout_error(run: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await run()
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0)  # nothing is left that cancels the task later

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [None, inf, 30])
def test_what_ends_in_time_is_left_alone(seconds: float | None) -> None:
    async def main() -> str:
        with TimeLimit(seconds):
            await asyncio.sleep(0)
            return "done"

    assert asyncio.run(main()) == "done"


def test_a_cancellation_from_outside_stays_one() -> None:
    async def main() -> None:
        async def work() -> None:
            with TimeLimit(30):
                await asyncio.sleep(30)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_an_error_of_the_block_stays_one() -> None:
    async def main() -> None:
        with TimeLimit(30):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        asyncio.run(main())


def test_limits_of_many_tasks_end_each_in_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            with TimeLimit(number / 500):
                await asyncio.sleep(30)
        except TimeoutError:
            ended.append(number)

    async def main() -> None:
        """The clock goes on by a millisecond at each turn of the loop, however busy the machine is."""
        loop, clock = asyncio.get_running_loop(), [0.0]
        monkeypatch.setattr(loop, "time", lambda: clock[0], raising=False)
        tasks = asyncio.gather(*[work(number) for number in (3, 1, 4, 2)])
        while not tasks.done():
            clock[0] += 0.001
            await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == [1, 2, 3, 4]


def test_a_thousand_limits_set_one_timer() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        timers, call_at = [], loop.call_at

        def count(when: float, *rest: object) -> asyncio.TimerHandle:
            timers.append(when)
            return call_at(when, *rest)  # type: ignore[arg-type]

        loop.call_at = count  # type: ignore[method-assign,assignment]
        for _ in range(1000):
            with TimeLimit(60):
                await asyncio.sleep(0)
        return len(timers)

    assert asyncio.run(main()) == 1


def test_it_must_be_used_in_a_task() -> None:
    async def main() -> None:
        raised: list[BaseException] = []
        done = asyncio.Event()

        def call() -> None:
            try:
                TimeLimit(1).__enter__()
            except RuntimeError as error:
                raised.append(error)
            done.set()

        asyncio.get_running_loop().call_soon(call)
        await done.wait()
        assert "task" in str(raised[0])

    asyncio.run(main())
