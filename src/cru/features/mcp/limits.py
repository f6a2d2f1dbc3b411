"""Limits of a server: the time of its calls, which stands still while the server waits for a person, and the number of its
notifications."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from cru.features.mcp import RequestFailed


class CallClocks:
    """Those of one server."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Timeout, float] = {}
        """Each limit, and the seconds that were left when the clocks were stopped."""
        self._stops = 0

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Raises TimeoutError."""
        async with asyncio.timeout(None if self._stops else seconds) as clock:
            self._running[clock] = seconds
            try:
                yield
            finally:
                del self._running[clock]

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """For the block no time runs."""
        self._stops += 1
        loop = asyncio.get_running_loop()
        for clock in self._running if self._stops == 1 else ():
            when = clock.when()
            if when is not None and not clock.expired():
                self._running[clock] = max(0.0, when - loop.time())
                clock.reschedule(None)
        try:
            yield
        finally:
            self._stops -= 1
            for clock, left in self._running.items() if not self._stops else ():
                if not clock.expired():
                    clock.reschedule(loop.time() + left)


PER_SECOND = 500
"""What comes beyond that is left out."""
LONGEST = 10.0
"""Seconds that a flood may last."""


class NotificationGate:
    """The limit of a server's notifications: so many a second are heard, and a server that never stops is given up.

    dropped: how many were left out
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._second, self._count = 0.0, 0
        self._flood_began: float | None = None

    def admits(self) -> bool:
        """Return whether the notification that has come is heard. Raises RequestFailed if there is no end of them."""
        now = time.monotonic()
        if now - self._second >= 1:
            if self._count <= PER_SECOND or now - self._second >= 2:
                self._flood_began = None
            self._second, self._count = now, 0
        self._count += 1
        if self._count <= PER_SECOND:
            return True
        self.dropped += 1
        self._flood_began = self._flood_began or now
        if now - self._flood_began > LONGEST:
            raise RequestFailed(
                f"it sends notifications without end: more than {PER_SECOND} a second for {LONGEST:g} s"
            )
        return False
