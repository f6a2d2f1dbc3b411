"""A program at the user's terminal: it runs in the background of it, and gets it as soon as it wants to read.

The kernel stops a process group of the background that reads the terminal (SIGTTIN). Then the face falls silent, the terminal is handed
over, and the group goes on; what a program writes needs no leave.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeAlias

from cru.core.base.process.child import Child

Lend: TypeAlias = Callable[[int], AbstractAsyncContextManager[None]]
"""Gives the terminal to a process group for a block."""

TICK = 0.02
TAIL = 4000
"""Bytes of standard error that are kept."""
MOST = 1 << 20
"""Bytes of it that are passed on."""
PAUSE = 0.5


class Terminal:
    """The terminal for one run.

    fd: a descriptor of it
    errors: what the program says on standard error, held back while it has not asked for the terminal
    was_lent: whether the program ever had it
    """

    def __init__(self, fd: int, lend: Lend, errors: RelayedErrors) -> None:
        self.fd = fd
        self.was_lent = False
        self._lend = lend
        self._errors = errors

    async def wait(self, child: Child, seconds: float | None) -> bool:
        """Wait for the child, and hand the terminal over when it wants it. True if the time was over first; that of a person does not
        count."""
        left = float("inf") if seconds is None else seconds
        stopped_by = 0
        while left > 0:
            if not await child.wait(min(TICK, left)):
                return False
            left -= TICK
            stopped_by = _stop_signal(child.pid) or stopped_by
            if stopped_by and self._is_ours():
                async with self._lend(child.pid):
                    self.was_lent = True
                    self._errors.hold(False)
                    child.signal(signal.SIGCONT)
                    stopped_by = await self._wait_while_lent(child)
                self._errors.hold(True)
                if stopped_by == signal.SIGTSTP:  # Ctrl-Z: all of us stop, and go on together
                    os.kill(os.getpid(), signal.SIGTSTP)
                    await asyncio.sleep(PAUSE)
            elif not stopped_by:
                self._errors.flush()
        return True

    async def _wait_while_lent(self, child: Child) -> int:
        """Until the child ends (0) or is stopped (the signal)."""
        while await child.wait(TICK):
            stopped_by = _stop_signal(child.pid)
            if stopped_by:
                return stopped_by
        return 0

    def _is_ours(self) -> bool:
        """Whether the terminal is ours to give: not if cru itself runs in the background."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return False


@contextmanager
def open_terminal(lend: Lend | None, errors: RelayedErrors, *, clear_line: bool) -> Iterator[Terminal | None]:
    """The terminal, if somebody sits there who can lend it. `clear_line`: the program may ask in the line that the cursor is in."""
    try:
        fd = -1 if lend is None else os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        fd = -1
    if lend is None or fd < 0:
        yield None
        return
    try:
        if clear_line:
            _clear_line(fd)
        errors.hold(True)
        yield Terminal(fd, lend, errors)
    finally:
        os.close(fd)


def _clear_line(fd: int) -> None:
    """Away with what the face said of its progress."""
    try:
        os.write(fd, b"\r\x1b[K")
    except OSError:
        pass  # the terminal has gone


async def share_interrupt(exit_status: int) -> None:
    """Ctrl-C, typed while the terminal was a program's, went to that alone; if it ended by it, so do we: all of us were meant."""
    if exit_status in (-signal.SIGINT, 128 + signal.SIGINT):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(PAUSE)  # until it has come here


def _stop_signal(pid: int) -> int:
    """The signal that has just stopped a child, 0 if none did."""
    try:
        state = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:
        return 0
    return state.si_status if state is not None else 0


class RelayedErrors:
    """Standard error of a program: passed on to ours as it comes, up to a limit, its end kept.

    While it is held, a line that is not finished waits for `flush`: it may be a question, which belongs on a terminal where nothing
    else is going on.
    """

    is_cut = False

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_held = False
        self._line = b""
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._room = MOST

    def feed(self, data: bytes) -> bool:
        self._kept.append(data)
        self._size += len(data)
        while self._size - len(self._kept[0]) >= TAIL:
            self._size -= len(self._kept.popleft())
        data, self._line = self._line + data, b""
        if self._is_held:
            whole = data.rfind(b"\n") + 1
            data, self._line = data[:whole], data[whole:]
        self._pass_on(data)
        return False

    def hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self.flush()

    def flush(self) -> None:
        line, self._line = self._line, b""
        self._pass_on(line)

    def _pass_on(self, data: bytes) -> None:
        if not self._room:
            return
        _write_error(data[: self._room])
        self._room -= min(self._room, len(data))
        if not self._room:
            _write_error(f"\ncru: {self._name} complains without end: the rest of that is left out\n".encode())

    def close(self) -> str:
        """The last of it as text."""
        self.flush()
        return b"".join(self._kept)[-TAIL:].decode("utf-8", "replace")


def _write_error(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(2, data) :]
        except BlockingIOError:
            continue
        except OSError:
            return  # nobody can be told
