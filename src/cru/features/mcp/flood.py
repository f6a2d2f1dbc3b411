"""Notifications of a server: so many a second are heard, and one that never stops is given up."""

from __future__ import annotations

import time

from cru.features.mcp import RequestFailed

PER_SECOND = 500
"""What comes beyond that is left out."""
LONGEST = 10.0
"""Seconds that a flood may last."""


class NotificationGate:
    """dropped: how many were left out"""

    def __init__(self) -> None:
        self.dropped = 0
        self._second, self._count = 0.0, 0
        self._flood_began: float | None = None

    def admits(self) -> bool:
        """Whether the one that has come is heard. Raises RequestFailed if there is no end of them."""
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
