"""A clock that a test holds, for code that takes its clock and its sleep as arguments."""

from __future__ import annotations

import asyncio


class Clock:
    """`sleep` returns at once, moves the time on by that much and remembers it in `slept` (seconds)."""

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self._wall, self._passed = wall, 0.0
        self.slept: list[float] = []

    def time(self) -> float:
        """Unix seconds."""
        return self._wall + self._passed

    def monotonic(self) -> float:
        return self._passed

    def advance(self, seconds: float) -> None:
        self._passed += seconds

    def set_wall(self, wall: float) -> None:
        """Somebody sets the computer's clock; monotonic time does not notice."""
        self._wall = wall - self._passed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(max(seconds, 0.0))
        await asyncio.sleep(0)
