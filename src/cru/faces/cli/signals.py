"""Signals of a running session: Ctrl-C and SIGTERM end the turn with its log complete; Ctrl-Z announces itself first."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

from cru.engine.session import Session
from cru.events.payloads import SessionPaused, SessionResumed
from cru.faces.cli.event_loop import Loop, leave_at_once

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 3


class Signals:
    """Handlers on the running loop. `code` is the exit status that a signal asks for, 0 if none came. `end` ends things
    (default: the session) and has three seconds; a third signal leaves at once, with the log complete up to there."""

    def __init__(self, session: Session, end: Callable[[], object] | None = None) -> None:
        self.code = 0
        self._count = 0
        self._session = session
        self._end_session = end or session.end
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        for number in ENDS:
            self._loop.add_signal_handler(number, self._end, number)
        self._loop.add_signal_handler(signal.SIGTSTP, self._pause)

    def remove(self) -> None:
        for number in (*ENDS, signal.SIGTSTP):
            self._loop.remove_signal_handler(number)

    def on_interrupt(self, call: Callable[[], object]) -> None:
        """Let Ctrl-C do something else than end the session."""
        self._loop.add_signal_handler(signal.SIGINT, call)

    async def stop_and_go(self, how: str = "SIGTSTP") -> None:
        """Hand control over to whoever started this process, until it continues it."""
        bus = self._session.parts.bus
        await bus.dispatch(SessionPaused(how))
        os.kill(os.getpid(), signal.SIGSTOP)
        await bus.dispatch(SessionResumed("SIGCONT"))

    def _end(self, number: int) -> None:
        self.code = 128 + number
        self._count += 1
        if self._count >= PATIENCE:
            leave_at_once(self.code, self._loop)
        if isinstance(self._loop, Loop):
            self._loop.ends_with(number)
        self._end_session()

    def _pause(self) -> None:
        task = self._loop.create_task(self.stop_and_go())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
