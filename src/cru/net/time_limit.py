"""A time limit for what a task awaits, for places that are passed in every round.

It behaves like `asyncio.timeout`. That one starts and cancels a timer at each use, which takes 25 Python calls and three system
calls; here all limits of an event loop share one timer, which is moved only when a limit ends earlier than the timer.
"""

from __future__ import annotations

import asyncio
from math import inf
from types import TracebackType


class TimeLimit:
    """Cancels the running task after so many seconds, and raises TimeoutError at the end of its `with` block.

    seconds: None for no limit; 0 or less ends the block at its first wait.
    """

    __slots__ = ("_cancelling", "_is_over", "_seconds", "_task", "_timer", "when")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = inf if seconds is None else seconds
        self._is_over = False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("TimeLimit must be used in a task")
        self._task, self._cancelling = task, task.cancelling()
        timer = self._timer = _last[0] if _last[0].loop is loop else _new_timer(loop)
        if self._seconds < inf:
            timer.limits.add(self)
            self.when = loop.time() + self._seconds
            if self.when < timer.due:
                timer.set(self.when)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.limits.discard(self)
        if self._is_over and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the task; its block raises TimeoutError, unless someone else has cancelled the task as well."""
        self._is_over = True
        self._task.cancel()


class _SharedTimer:
    """The one timer of a loop. It is due at the earliest end of `limits`, or before: then it is set again."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.limits: set[TimeLimit] = set()
        self.due = inf
        self._handle: asyncio.TimerHandle | None = None

    def set(self, when: float) -> None:
        """Let it be due at this time of the loop's clock."""
        if self._handle is not None:
            self._handle.cancel()
        assert self.loop is not None
        self.due, self._handle = when, self.loop.call_at(when, self._ring)

    def _ring(self) -> None:
        assert self.loop is not None
        self.due, self._handle = inf, None
        now = self.loop.time()
        for limit in [limit for limit in self.limits if limit.when <= now]:
            self.limits.discard(limit)
            limit.expire()
        if self.limits:
            self.set(min(limit.when for limit in self.limits))


_last = [_SharedTimer(None)]
"""The timer that was used last. A loop that takes turns with another one has several timers, which is only less thrifty."""


def _new_timer(loop: asyncio.AbstractEventLoop) -> _SharedTimer:
    _last[0] = _SharedTimer(loop)
    return _last[0]
