"""`cru.spawn` and `cru.schedule`: work beside the conversation, until the session closes."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from cru.namespace.arguments import function, number, options, whole
from cru.namespace.callbacks import Callback, callback, detach
from cru.namespace.host import BadArgument, NamespaceError, host

MOST = 256


class _Schedules(Struct):
    last: int = 0
    live: dict[int, Task[Any]] = field(default_factory=dict)


def spawn(work: Callable[[], Any]) -> None:
    """spawn(fn) runs fn beside everything else and returns at once; its errors are reported. Raises BadArgument.

    Example: cru.spawn(function() end) --> nil
    """
    made = callback(function("cru.spawn", "fn", work)).detached()
    detach(made.host, made.guarded, "spawned function")


def schedule(opts: float | dict[str, Any], work: Callable[[], Any]) -> int:
    """schedule(seconds | {every=seconds}, fn) -> handle. Calls fn again and again, first after one interval, until it is cancelled
    or the session closes; `interval` is another word for `every`. At most 256 at a time. Raises BadArgument, NamespaceError.

    Example: cru.schedule.cancel(cru.schedule(60, function() end)) --> true
    """
    where = "cru.schedule"
    every: Any = opts
    if isinstance(opts, dict):
        given = options(where, opts, ("every", "interval"))
        every = given.get("every", given.get("interval"))
    if number(where, "every", every) <= 0:
        raise BadArgument(f"{where}: every must be more than 0, got {every}")
    made = callback(function(where, "fn", work)).detached()
    all = _schedules()
    if len(all.live) >= MOST:
        raise NamespaceError(
            f"{where}: {MOST} schedules are live already", "cancel one with cru.schedule.cancel(handle)"
        )
    all.last = handle = all.last + 1
    task = all.live[handle] = detach(made.host, _again, made, every)
    task.add_done_callback(lambda _: all.live.pop(handle, None))
    return handle


def cancel(handle: int) -> bool:
    """schedule.cancel(handle) -> true, or false if it was not live.

    Example: cru.schedule.cancel(999) --> false
    """
    task = _schedules().live.pop(whole("cru.schedule.cancel", "handle", handle), None)
    return task is not None and task.cancel()


async def _again(work: Callback, every: float) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        due = max(
            due + every, loop.time()
        )  # a call that took longer than the interval delays the next, they never pile up
        await asyncio.sleep(due - loop.time())
        await work.guarded("scheduled function")


def _schedules() -> _Schedules:
    found: _Schedules = host().session.shared.setdefault("schedules", _Schedules())
    return found
