"""`cru.timer`: waiting. The session goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cru.namespace.arguments import function, number
from cru.namespace.callbacks import error_value
from cru.namespace.host import Values, call


async def sleep(seconds: float) -> None:
    """timer.sleep(seconds) waits; the number must be finite and not negative. Raises BadArgument.

    Example: cru.timer.sleep(0) --> nil
    """
    import asyncio

    await asyncio.sleep(number("cru.timer.sleep", "seconds", seconds, 0))


async def timeout(seconds: float, work: Callable[[], Any]) -> Values:
    """timer.timeout(seconds, fn) -> (true, result), (false, error) if fn failed, (false, "timeout") if it took longer; it is
    ended then. Raises BadArgument.

    Example: cru.timer.timeout(0.01, function() cru.timer.sleep(5) end) --> false
    """
    import asyncio

    where = "cru.timer.timeout"
    limit = number(where, "seconds", seconds, 0)
    function(where, "fn", work)
    try:
        async with asyncio.timeout(limit) as clock:
            return Values((True, await call(work)))
    except TimeoutError as error:
        return Values((False, "timeout" if clock.expired() else error_value(error)))
    except Exception as error:  # noqa: BLE001  the boundary that returns errors as values
        return Values((False, error_value(error)))


def clock() -> float:
    """timer.clock() -> monotonic seconds, from an arbitrary start.

    Example: cru.timer.clock() <= cru.timer.clock() --> true
    """
    import time

    return time.monotonic()
