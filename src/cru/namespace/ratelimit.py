"""`cru.ratelimit`: a token bucket."""

from __future__ import annotations

import time
from typing import Any

from cru.namespace.arguments import number, options, whole
from cru.namespace.host import BadArgument, Object


class Bucket(Object):
    """Starts full; gains one token every `interval` seconds, up to `capacity`."""

    METHODS = ("acquire", "try_acquire", "remaining")

    def __init__(self, capacity: int, interval: float) -> None:
        self._capacity, self._interval = capacity, interval
        self._tokens = float(capacity)
        self._at = time.monotonic()

    async def acquire(self) -> None:
        """Take a token, waiting for it; those who wait are served in order, roughly."""
        import asyncio

        while not self.try_acquire():  # noqa: ASYNC110  (tokens come with time, nothing tells of them)
            await asyncio.sleep((1 - self._tokens) * self._interval)

    def try_acquire(self) -> bool:
        """Take a token if there is one."""
        self._fill()
        # the sum of many small refills may miss a whole token by rounding
        if self._tokens < 1 - 1e-9:
            return False
        self._tokens = max(0.0, self._tokens - 1)
        return True

    def remaining(self) -> int:
        """How many tokens there are now."""
        self._fill()
        return int(self._tokens + 1e-9)

    def _fill(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._capacity, self._tokens + (now - self._at) / self._interval)
        self._at = now


def new(opts: dict[str, Any] | None = None) -> Bucket:
    """ratelimit.new{capacity=5, interval=1.0} -> a bucket that gains one token every interval seconds: b:acquire() waits,
    b:try_acquire() -> bool, b:remaining() -> number. Raises BadArgument.

    Example: cru.ratelimit.new({capacity=2}):remaining() --> 2
    """
    where = "cru.ratelimit.new"
    given = options(where, opts, ("capacity", "interval"))
    capacity = whole(where, "capacity", given.get("capacity", 5), 1)
    interval = number(where, "interval", given.get("interval", 1.0))
    if interval <= 0:
        raise BadArgument(f"{where}: interval must be more than 0, got {interval}")
    return Bucket(capacity, interval)
