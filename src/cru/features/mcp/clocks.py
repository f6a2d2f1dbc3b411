"""Time limits of calls. They stand still while the server waits for a person: a dialog has no hurry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


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
