"""Hooks that run beside the session and wake an idle chat (Claude Code's `asyncRewake`)."""

from __future__ import annotations

import asyncio

WOKEN = "[A hook that ran beside the session has something to say; it stands beside this message.]"


class HookWaker:
    """Set by a hook that wakes; cleared by whatever request takes along what hooks left for the model (cru.core.turn.parts.Waker)."""

    def __init__(self) -> None:
        self._is_set = asyncio.Event()

    def wake(self) -> None:
        self._is_set.set()

    def clear(self) -> None:
        self._is_set.clear()

    def has_report(self) -> bool:
        return self._is_set.is_set()

    def take_report(self) -> str:
        """The words themselves come with the request, as what every asynchronous hook says."""
        if not self._is_set.is_set():
            return ""
        self._is_set.clear()
        return WOKEN

    async def wait_for_any(self) -> bool:
        return await self._is_set.wait()
