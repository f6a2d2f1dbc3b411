"""A program at the user's terminal: it runs in the background of it, and gets it as soon as it wants to read.

The kernel stops a process group of the background that reads the terminal (SIGTTIN). Then the face falls silent, the terminal is handed
over, and the group goes on; what a program writes needs no leave.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from cru.extensions.executables.process import Lend
from cru.process.child import Child

TICK = 0.02
TAIL = 4000
"""Bytes of standard error that are kept."""
PAUSE = 0.5


class Terminal:
    """The terminal for one run; `lent` says whether the program ever had it."""

    def __init__(self, fd: int, lend: Lend) -> None:
        self.fd = fd
        self.lent = False
        self._lend = lend

    async def wait(self, child: Child, seconds: float, errors: Errors) -> bool:
        """Wait for the child, and hand the terminal over when it wants it. True if the time was over first; that of a person does not
        count."""
        stopped = 0
        while seconds > 0:
            if not await child.wait(min(TICK, seconds)):
                return False
            seconds -= TICK
            stopped = _stopped(child.pid) or stopped
            if stopped and self._in_front():
                async with self._lend(child.pid):
                    self.lent = True
                    errors.hold(False)
                    child.signal(signal.SIGCONT)
                    stopped = await self._theirs(child)
                errors.hold(True)
                if stopped == signal.SIGTSTP:  # Ctrl-Z: all of us stop, and go on together
                    os.kill(os.getpid(), signal.SIGTSTP)
                    await asyncio.sleep(PAUSE)
            elif not stopped:
                errors.flush()
        return True

    async def _theirs(self, child: Child) -> int:
        """Until the child ends (0) or is stopped (the signal) while the terminal is its own."""
        while await child.wait(TICK):
            stopped = _stopped(child.pid)
            if stopped:
                return stopped
        return 0

    def _in_front(self) -> bool:
        """Whether the terminal is ours to give: not if cru itself runs in the background."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return False


@contextmanager
def opened(lend: Lend | None, ready: bool) -> Iterator[Terminal | None]:
    """The terminal, if somebody sits there who can lend it; `ready`: the program may ask in the line that the cursor is in."""
    try:
        fd = -1 if lend is None else os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        fd = -1
    if lend is None or fd < 0:
        yield None
        return
    try:
        if ready:
            _clear_line(fd)
        yield Terminal(fd, lend)
    finally:
        os.close(fd)


def _clear_line(fd: int) -> None:
    """Away with what the face said of its progress."""
    try:
        os.write(fd, b"\r\x1b[K")
    except OSError:
        pass  # the terminal has gone


async def interrupted_too(code: int) -> None:
    """Ctrl-C, typed while the terminal was a program's, went to that alone; if it ended by it, so do we: all of us were meant."""
    if code in (-signal.SIGINT, 128 + signal.SIGINT):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(PAUSE)  # until it has come here


def _stopped(pid: int) -> int:
    """The signal that has just stopped a child, 0 if none did."""
    try:
        state = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:
        return 0
    return state.si_status if state is not None else 0


class Errors:
    """Standard error of a program: passed on to ours as it comes, its end kept. With `held`, a line that is not finished waits for `flush`:
    it may be a question, which belongs on a terminal where nothing else is going on."""

    def __init__(self, held: bool) -> None:
        self._held = held
        self._line = b""
        self._kept: deque[bytes] = deque()
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._kept.append(data)
        self._size += len(data)
        while self._size - len(self._kept[0]) >= TAIL:
            self._size -= len(self._kept.popleft())
        data, self._line = self._line + data, b""
        if self._held:
            whole = data.rfind(b"\n") + 1
            data, self._line = data[:whole], data[whole:]
        _tell(data)

    def hold(self, held: bool) -> None:
        self._held = held
        self.flush()

    def flush(self) -> None:
        line, self._line = self._line, b""
        _tell(line)

    def close(self) -> str:
        """The last of it as text."""
        self.flush()
        return b"".join(self._kept)[-TAIL:].decode("utf-8", "replace")


def _tell(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(2, data) :]
        except BlockingIOError:
            continue
        except OSError:
            return  # nobody can be told
