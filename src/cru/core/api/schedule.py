"""`cru.spawn` and `cru.schedule`: work beside the conversation, until the session closes."""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from cru.core.api.arguments import function, number, options, own, whole
from cru.core.api.callbacks import Callback, bind_callback, error_value, report_failure, run_in_background
from cru.core.api.host import BadArgument, NamespaceError, host
from cru.core.api.timing import wait

MOST = 256
MOST_SPAWNED = 1024
LEAST = 0.05
"""Seconds: nothing is called more often."""
LONGEST = 60.0
"""Seconds to which the pause grows while a function fails again and again, if its interval is not longer."""


class _Schedules(Struct):
    last: int = 0
    live: dict[int, Task[Any]] = field(default_factory=dict)


def spawn(work: Callable[[], object]) -> None:
    """spawn(fn) runs fn beside everything else and returns at once; its errors are reported. At most 1024 at a time. Raises BadArgument,
    NamespaceError.

    Example: cru.spawn(function() end) --> nil
    """
    background = bind_callback(function("cru.spawn", "fn", work)).detached()
    live = host().session.family_state("spawned", set[Task[Any]])
    if len(live) >= MOST_SPAWNED:
        raise NamespaceError(
            f"cru.spawn: {MOST_SPAWNED} functions run beside everything else already", "wait until some have ended"
        )
    task = run_in_background(background.host, background.guarded, "spawned function")
    live.add(task)
    task.add_done_callback(live.discard)


def schedule(opts: float | dict[str, object], work: Callable[[], object]) -> int:
    """schedule(seconds | {every=seconds}, fn) -> handle. Calls fn again and again, first after one interval, until it is cancelled
    or the session closes; `interval` is another word for `every`. An interval under 0.05 s counts as 0.05 s. While fn fails, the pause
    doubles each time, up to 60 s, and the same error is told once. At most 256 at a time. Raises BadArgument, NamespaceError.

    Example: cru.schedule.cancel(cru.schedule(60, function() end)) --> true
    """
    where = "cru.schedule"
    every: Any = opts
    if isinstance(opts, dict):
        fields = options(where, opts, ("every", "interval"))
        every = fields.get("every", fields.get("interval"))
    if number(where, "every", every) <= 0:
        raise BadArgument(f"{where}: every must be more than 0, got {every}")
    background = bind_callback(function(where, "fn", work)).detached()
    all = _schedules()
    if len(all.live) >= MOST:
        raise NamespaceError(
            f"{where}: {MOST} schedules are live already", "cancel one with cru.schedule.cancel(handle)"
        )
    all.last = handle = all.last + 1
    task = all.live[handle] = run_in_background(background.host, _repeat, background, max(every, LEAST))
    task.add_done_callback(lambda _: all.live.pop(handle, None))
    return handle


def cancel(handle: int) -> bool:
    """schedule.cancel(handle) -> true, or false if it was not live. Raises BadArgument if it belongs to another plugin.

    Example: cru.schedule.cancel(999) --> false
    """
    where = "cru.schedule.cancel"
    live, number = _schedules().live, whole(where, "handle", handle)
    task = live.get(number)
    if task is None:
        return False
    own(where, f"schedule {number}", host().session.tasks.get(task, host().plugin.name))
    del live[number]
    return task.cancel()


async def _repeat(work: Callback, every: float) -> None:
    loop, failures = asyncio.get_running_loop(), _Failures(work)
    due = loop.time()
    try:
        while True:
            pause = min(every * 2 ** min(failures.running, 32), max(every, LONGEST))
            due = max(due + pause, loop.time())  # a call that took longer delays the next one, they never pile up
            if await wait(max(due - loop.time(), 0)):
                due = loop.time()  # as if it had passed
            await failures.call()
    finally:
        failures.end()


class _Failures:
    """The calls of one scheduled function: the same error is told once, and how often it came when that is over.

    running: how many calls failed, one after another, up to now
    """

    def __init__(self, work: Callback) -> None:
        self.running = 0
        self._work = work
        self._last, self._repeats = "", 0

    async def call(self) -> None:
        try:
            await self._work.call()
        except Exception as error:  # noqa: BLE001  the boundary around code of an extension: reported
            self.running += 1
            self._report(error)
        else:
            self.running = 0
            self.end()

    def end(self) -> None:
        """Tell how often the last error came again."""
        if self._repeats:
            times = "once more" if self._repeats == 1 else f"{self._repeats} more times"
            host = self._work.host
            text = f"{host.plugin.name}: scheduled function: it failed {times}: {self._last}"
            host.session.parts.bus.stream.warn(text, host.plugin.name)
        self._last, self._repeats = "", 0

    def _report(self, error: Exception) -> None:
        text = str(error_value(error))
        if text == self._last:
            self._repeats += 1
            return
        self.end()
        report_failure(self._work.host, error, "scheduled function")
        self._last = text


def _schedules() -> _Schedules:
    return host().session.family_state("schedules", _Schedules)
