"""Signals of a running session: Ctrl-C and SIGTERM end the turn with its log complete; Ctrl-Z announces itself first."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from cru.engine.session import Session
from cru.events.payloads import SessionPaused, SessionResumed


class Signals:
    """Handlers on the running loop. `code` is the exit status that a signal asks for, 0 if none came."""

    def __init__(self, session: Session) -> None:
        self.code = 0
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._end, number)
        self._loop.add_signal_handler(signal.SIGTSTP, self._pause)

    def remove(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
            self._loop.remove_signal_handler(number)

    def _end(self, number: int) -> None:
        self.code = 128 + number
        self._session.end()

    def _pause(self) -> None:
        task = self._loop.create_task(self._stop_and_go())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop_and_go(self) -> None:
        bus = self._session.parts.bus
        await bus.dispatch(SessionPaused("SIGTSTP"))
        os.kill(os.getpid(), signal.SIGSTOP)
        await bus.dispatch(SessionResumed("SIGCONT"))
