"""`cru.retry`: try again, waiting longer each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cru.namespace.arguments import function, number, options, whole
from cru.namespace.callbacks import error_value
from cru.namespace.host import call

_OPTIONS = ("max_retries", "base_delay", "max_delay", "jitter", "retryable")


async def retry(work: Callable[[], Any], opts: dict[str, Any] | None = None) -> Any:
    """retry(fn, {max_retries=3, base_delay=1, max_delay=60, jitter=true, retryable=fn(err)->bool}?) -> what fn returns. Waits
    base_delay * 2^n seconds, at most max_delay, times 0.5 to 1 with jitter; an error table's `after` (seconds) is the least wait.
    Raises the last error, or at once one that is not retryable.

    Example: cru.retry(function() return 7 end) --> 7
    """
    where = "cru.retry"
    function(where, "fn", work)
    given = options(where, opts, _OPTIONS)
    retries = whole(where, "max_retries", given.get("max_retries", 3), 0)
    base = number(where, "base_delay", given.get("base_delay", 1), 0)
    most = number(where, "max_delay", given.get("max_delay", 60), 0)
    for attempt in range(retries + 1):
        try:
            return await call(work)
        except Exception as error:  # the last one goes on, as do those that are not retryable
            if attempt == retries or not await _retryable(given.get("retryable"), error):
                raise
            await _wait(min(base * 2**attempt, most), given.get("jitter", True) is not False, error)
    raise AssertionError("unreachable")


async def _retryable(judge: Callable[[Any], Any] | None, error: Exception) -> bool:
    return judge is None or bool(await call(judge, error_value(error)))


async def _wait(seconds: float, jitter: bool, error: Exception) -> None:
    import asyncio
    import random

    if jitter:
        seconds *= random.uniform(0.5, 1)
    value = error_value(error)
    after = value.get("after") if isinstance(value, dict) else getattr(error, "after", None)
    if isinstance(after, (int, float)) and not isinstance(after, bool):
        seconds = max(seconds, after)
    await asyncio.sleep(seconds)
