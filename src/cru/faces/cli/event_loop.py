"""The event loop of a session, whose signals a thread hears as well: what blocks the loop must not make the process immortal.

Lua lets other threads run, and so does Python; only a long call of C that does not (none that plugins reach through `cru`) is out of reach.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn, TypeVarTuple, Unpack

from cru.events.errors import NotYours

Given = TypeVarTuple("Given")

PATIENCE = 2.0
"""Seconds for which the loop may be deaf to SIGTERM, SIGHUP, or the second Ctrl-C."""


LAST = 3.0
"""Seconds after a signal that ends the run: whatever is not over then ends with the process."""


class Loop(asyncio.SelectorEventLoop):
    """As its base; but the process ends, with 128 + number, once the loop does not answer to a signal for PATIENCE, or `ends_with` says
    so. Nobody stops it."""

    def __init__(self) -> None:
        super().__init__()
        self.children: dict[int, Callable[[], None]] = {}
        """What ends each running child, by process id (cru.process.child.ChildOwner)."""
        self._calls: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        self._unheard: list[tuple[int, float]] = []
        self._last: tuple[int, float] | None = None
        self._pipe = -1

    def stop(self) -> None:
        """For asyncio, when the work is done. Raises NotYours."""
        if sys._getframe(1).f_globals.get("__name__") != "asyncio.base_events":
            raise NotYours("the event loop is cru's, and nobody else stops it", "return from the handler instead")
        super().stop()

    def ends_with(self, number: int) -> None:
        """This signal ends the run: the process has LAST seconds, whatever the loop does."""
        if self._last is None and self._pipe >= 0:
            self._last = number, time.monotonic() + LAST
            os.write(self._pipe, b"\0")  # the thread looks again

    def add_signal_handler(self, sig: int, callback: Callable[[Unpack[Given]], object], *args: *Given) -> None:
        super().add_signal_handler(sig, callback, *args)
        self._calls[sig] = callback, args
        self._listen()

    def remove_signal_handler(self, sig: int) -> bool:
        self._calls.pop(sig, None)
        removed = super().remove_signal_handler(sig)
        self._listen()
        return removed

    def _listen(self) -> None:
        """The numbers of signals go to the thread instead of to the base, which sets this anew each time."""
        if self._pipe < 0:
            read, self._pipe = os.pipe()
            os.set_blocking(self._pipe, False)
            threading.Thread(target=self._watch, args=(read, _terminal()), name="signals", daemon=True).start()
        signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)

    def _watch(self, pipe: int, terminal: Callable[[], None]) -> None:
        while not self.is_closed():
            due = self._due()
            if _is_readable(pipe, None if due is None else due[1] - time.monotonic()):
                for number in filter(None, os.read(pipe, 64)):
                    self._unheard.append((number, time.monotonic()))
                    self.call_soon_threadsafe(self._hear, number)
            elif (due := self._due()) and due[1] <= time.monotonic():
                terminal()
                os.write(2, b"cru: ended while something in it, a plugin perhaps, did not come back\n")
                leave_at_once(128 + due[0], self)

    def _hear(self, number: int) -> None:
        self._unheard.clear()
        callback, args = self._calls.get(number, (None, ()))
        if callback is not None:
            callback(*args)

    def _due(self) -> tuple[int, float] | None:
        """The signal that ends the process, and when."""
        interrupts, last = 0, self._last
        for number, at in tuple(self._unheard):
            interrupts += number == signal.SIGINT
            if number in (signal.SIGTERM, signal.SIGHUP) or interrupts == 2:
                due = number, at + PATIENCE
                return due if last is None else min(due, last, key=lambda one: one[1])
        return last


def leave_at_once(code: int, loop: asyncio.AbstractEventLoop) -> NoReturn:
    """End the process with the programs that it runs; nothing is asked to end. Imports nothing: what hangs may hold that lock."""
    if isinstance(loop, Loop):
        for kill in tuple(loop.children.values()):
            kill()
    os._exit(code)


def _is_readable(descriptor: int, seconds: float | None) -> bool:
    """Wait until it can be read, at most so long (None: for ever). select() would refuse descriptors beyond 1,023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))


def _terminal() -> Callable[[], None]:
    """What makes the terminal as it is now."""
    try:
        import termios

        before = termios.tcgetattr(0)
    except (ImportError, OSError, termios.error):
        return lambda: None
    return lambda: termios.tcsetattr(0, termios.TCSANOW, before)
