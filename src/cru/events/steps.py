"""Other people's coroutines, step by step: who keeps the loop waiting, and who cancels the task that cru runs them in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from time import perf_counter
from typing import Any

from cru.events.calling import SLOW, Told, cancels
from cru.events.errors import CancelledItself


class Steps:
    """Awaits `work` and gives its result. `slow(seconds)` hears once of a step that is too long. Raises CancelledItself if the work
    cancels the task that it runs in, which is cru's: nobody outside asked for it."""

    __slots__ = ("_slow", "_work")

    def __init__(self, work: Awaitable[Any], slow: Callable[[float], None]) -> None:
        self._work = work
        self._slow: Callable[[float], None] | None = slow

    def __await__(self) -> Generator[Any, Any, Any]:
        work = self._work.__await__()
        thrown: BaseException | None = None
        while True:
            before, began, end = cancels(), perf_counter(), None
            try:
                waiting = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as raised:
                end = raised
            finally:
                self._timed(began)
                if cancels() > before:
                    yield from _taken_back(before)
                    raise CancelledItself
            if end is not None:
                return end.value
            try:
                thrown = None
                yield waiting
            except BaseException as raised:  # noqa: BLE001  handed on to the work: it is for it to deal with
                thrown = raised

    def _timed(self, began: float) -> None:
        now = perf_counter()
        if now - began > SLOW and self._slow is not None and Told.at < began:
            Told.at = now
            self._slow(now - began)
            self._slow = None


async def taken_back(before: int) -> None:
    """Undo the cancels of this task beyond `before`, which code made that had no right to. One that comes meanwhile holds."""
    await _Yields(before)


class _Yields:
    def __init__(self, before: int) -> None:
        self._before = before

    def __await__(self) -> Generator[Any, Any, Any]:
        return _taken_back(self._before)


def _taken_back(before: int) -> Generator[Any, Any, None]:
    task = asyncio.current_task()
    assert task is not None
    while task.cancelling() > before:
        task.uncancel()
    try:
        yield  # the loop throws the cancel in here
    except asyncio.CancelledError:
        if task.cancelling() > before:
            raise
