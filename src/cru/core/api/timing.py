"""`cru.timer`, `cru.retry`, `cru.ratelimit`: waiting, trying again, and a token bucket. The session goes on meanwhile."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from cru.core.api.arguments import function, number, options, whole
from cru.core.api.callbacks import error_value
from cru.core.api.host import HOST, BadArgument, Object, Values, call, stand_in

RETRY_OPTIONS = ("max_retries", "base_delay", "max_delay", "jitter", "retryable")


async def sleep(seconds: float) -> None:
    """timer.sleep(seconds) waits; the number must be finite and not negative. Raises BadArgument.

    Example: cru.timer.sleep(0) --> nil
    """
    await _sleep(number("cru.timer.sleep", "seconds", seconds, 0))


async def wait(seconds: float) -> bool:
    """Wait as `cru.timer.sleep` does now; whether a test has put something in its place."""
    sleeping = stand_in("timer.sleep")
    if sleeping is None:
        await _sleep(seconds)
        return False
    await call(sleeping, seconds)
    await asyncio.sleep(0)
    return True


async def _sleep(seconds: float) -> None:
    here = HOST.get(None)
    if here is not None and here.plugin.on_wait is not None:
        here.plugin.on_wait(seconds)
    await asyncio.sleep(seconds)


async def timeout(seconds: float, work: Callable[[], object]) -> Values:
    """timer.timeout(seconds, fn) -> (true, result), (false, error) if fn failed, (false, "timeout") if it took longer; it is
    ended then. Raises BadArgument.

    Example: cru.timer.timeout(0.01, function() cru.timer.sleep(5) end) --> false
    """
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
    return time.monotonic()


async def retry(work: Callable[[], object], opts: dict[str, object] | None = None) -> object:
    """retry(fn, {max_retries=3, base_delay=1, max_delay=60, jitter=true, retryable=fn(err)->bool}?) -> what fn returns. Waits
    base_delay * 2^n seconds, at most max_delay, times 0.5 to 1 with jitter; an error table's `after` (seconds) is the least wait.
    Raises the last error, or at once one that is not retryable.

    Example: cru.retry(function() return 7 end) --> 7
    """
    where = "cru.retry"
    function(where, "fn", work)
    fields = options(where, opts, RETRY_OPTIONS)
    retries = whole(where, "max_retries", fields.get("max_retries", 3), 0)
    base = number(where, "base_delay", fields.get("base_delay", 1), 0)
    most = number(where, "max_delay", fields.get("max_delay", 60), 0)
    for attempt in range(retries + 1):
        try:
            return await call(work)
        except Exception as error:  # the last one goes on, as do those that are not retryable
            if attempt == retries or not await _retryable(fields.get("retryable"), error):
                raise
            await _wait(min(base * 2**attempt, most), fields.get("jitter", True) is not False, error)
    raise AssertionError("unreachable")


async def _retryable(judge: Callable[[object], object] | None, error: Exception) -> bool:
    return judge is None or bool(await call(judge, error_value(error)))


async def _wait(seconds: float, jitter: bool, error: Exception) -> None:
    if jitter:
        seconds *= random.uniform(0.5, 1)
    value = error_value(error)
    after = value.get("after") if isinstance(value, dict) else getattr(error, "after", None)
    if isinstance(after, (int, float)) and not isinstance(after, bool):
        seconds = max(seconds, after)
    await wait(seconds)


class TokenBucket(Object):
    """A bucket that starts full.

    capacity: the most tokens that it holds
    interval: seconds in which it gains one token
    """

    METHODS = ("acquire", "try_acquire", "remaining")

    def __init__(self, capacity: int, interval: float) -> None:
        self._capacity, self._interval = capacity, interval
        self._tokens = float(capacity)
        self._filled_at = time.monotonic()

    async def acquire(self) -> None:
        """Take a token, waiting for it; those who wait are served in order, roughly."""
        while not self.try_acquire():
            seconds = (1 - self._tokens) * self._interval
            if await wait(seconds):
                self._filled_at -= seconds  # as if they had passed

    def try_acquire(self) -> bool:
        """Take a token if there is one."""
        self._refill()
        # the sum of many small refills may miss a whole token by rounding
        if self._tokens < 1 - 1e-9:
            return False
        self._tokens = max(0.0, self._tokens - 1)
        return True

    def remaining(self) -> int:
        """How many tokens there are now."""
        self._refill()
        return int(self._tokens + 1e-9)

    def _refill(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._capacity, self._tokens + (now - self._filled_at) / self._interval)
        self._filled_at = now


def new_bucket(opts: dict[str, object] | None = None) -> TokenBucket:
    """ratelimit.new{capacity=5, interval=1.0} -> a bucket that gains one token every interval seconds: b:acquire() waits,
    b:try_acquire() -> bool, b:remaining() -> number. Raises BadArgument.

    Example: cru.ratelimit.new({capacity=2}):remaining() --> 2
    """
    where = "cru.ratelimit.new"
    fields = options(where, opts, ("capacity", "interval"))
    capacity = whole(where, "capacity", fields.get("capacity", 5), 1)
    interval = number(where, "interval", fields.get("interval", 1.0))
    if interval <= 0:
        raise BadArgument(f"{where}: interval must be more than 0, got {interval}")
    return TokenBucket(capacity, interval)
