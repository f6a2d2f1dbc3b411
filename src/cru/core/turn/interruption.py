"""Work of a session that Ctrl-C, /stop or the end of the process may interrupt."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from cru.core.base.values.cancellation import SCOPE, Scope, begin, cancels
from cru.core.events.stream import Stream
from cru.core.turn import Interrupted

T = TypeVar("T")

SHUTDOWN_GRACE = 2.0
"""Seconds after `end` for all that is announced about it: the leg's end, the session's, plugins that clean up."""


class InterruptibleWork:
    """Runs one piece of work after another, or within another, so that the innermost can be interrupted."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._running: tuple[asyncio.Task[Any], Scope] | None = None
        self._is_asked = False
        self._deadline = 0.0

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def interrupt(self) -> bool:
        """End what runs now; False if nothing does. Nothing new begins in it."""
        if self._running is None or self._running[0].done():
            return False
        task, scope = self._running
        self._is_asked = True
        scope.end()
        task.cancel()
        return True

    def end(self) -> None:
        """Interrupt, and leave all later work together two seconds."""
        self._deadline = self._deadline or asyncio.get_running_loop().time() + SHUTDOWN_GRACE
        self.interrupt()

    async def run(self, work: Coroutine[Any, Any, T], what: str = "") -> T:
        """Run as a task that `interrupt` can end; raises Interrupted with what was interrupted, if it did."""
        scope = Scope(SCOPE.get())
        task = begin(work, scope)
        outer, self._running, self._is_asked = self._running, (task, scope), False
        loop = asyncio.get_running_loop()
        timer = loop.call_at(self._deadline, self.interrupt) if self._deadline else None
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():
                scope.end()
                task.cancel()
                raise
        finally:
            self._running = outer
            if timer is not None:
                timer.cancel()
        self.warn_if_unasked()
        raise Interrupted(f"{what} was interrupted" if what else "interrupted")

    def warn_if_unasked(self) -> None:
        """Something was interrupted: warn once if nobody asked for it."""
        if not self._is_asked and not cancels():
            self._stream.warn("nobody interrupted this: code of a plugin cancelled a task of cru")
        self._is_asked = True
