"""What ends running commands if this process dies without a chance to: kill -9, the OOM killer, a crash of the interpreter.

A shell waits in a session of its own for the end of a pipe that only we hold open; then it becomes `sweep.py`. It costs one start a
session and 0.3 MB; each command costs two short writes into a table that has no name on disk. (A parent-death signal would reach the
child alone, not what it started, and takes away the fast way to start it; docs/decisions/background.md has the figures.)
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from cru.core.base.process.errors import start_error
from cru.core.base.process.marks import open_pidfd, ticks_now
from cru.core.base.values.errors import CruError

SHELL = "/bin/sh"
SWEEP = Path(__file__).with_name("sweep.py")
SOURCE = """
trap '' HUP INT QUIT TERM USR1 USR2
while read -r _; do :; done
[ -e "/dev/fd/$2" ] && ! [ -s "/dev/fd/$2" ] || exec "$0" -I -S "$1" "$2"
"""
SLOT = 512
"""Bytes of a line of the table: marks have at most marks.LONGEST characters more than their own 60."""
PAUSE = 1.0
"""Seconds from one new start to the next: what ends each shell at once may not keep us busy."""

Listener: TypeAlias = Callable[[str], object]
"""Hears, in words for a person, that something ended the shell while it watched something."""


class Guardian:
    """Knows the children that must not outlive this process; the shell is started with the first. Belongs to the loop's thread.
    Its end is noticed at once where Linux has pidfds, elsewhere with the next command, and another one watches the same table.

    The table is lines of one length, each written whole at once, so that there is no moment at which it says less than it should: the
    first has the mark of all that ends with this process, each other one a child that runs, or nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, listeners: Iterable[Listener] = ()) -> None:
        self._loop = loop
        self._listeners = listeners
        self._told: set[str] = set()
        self._pidfd = -1
        self._restart: asyncio.TimerHandle | None = None
        self._restarted = -PAUSE
        self._pipe = self._table = -1
        self._shell: subprocess.Popen[bytes] | None = None
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._session = ""

    @property
    def pid(self) -> int:
        """Of the shell; 0: there is none."""
        return 0 if self._shell is None else self._shell.pid

    @property
    def session(self) -> str:
        """The mark of what may run although its command has ended; "": there is nothing of the kind."""
        return self._session

    def bind(self, mark: str) -> None:
        """What has this mark of a session ends with this process, whoever started it. Raises StartError if nobody could watch it."""
        self._ensure_shell()
        if self._session != mark:
            self._session = mark
            self._write(0, f"*{mark}")

    def unbind(self) -> None:
        """What had that mark has ended."""
        if self._session:
            self._session = ""
            self._write(0, "")

    def expect(self, mark: str, *, is_bound: bool = False) -> None:
        """Note that a child with this mark is about to start. Raises StartError if nothing could watch it.

        is_bound: the mark is of the session for which `bind` has just made sure of that
        """
        if not is_bound:
            self._ensure_shell()
        slot = self._slots[mark] = self._free.pop() if self._free else len(self._slots) + 1
        self._write(slot, f"+{mark}")

    def add(self, mark: str, pid: int) -> None:
        """It has started."""
        self._write(self._slots[mark], f"={pid} {ticks_now()} {mark}")

    def remove(self, mark: str) -> None:
        """It has ended, or did not start."""
        slot = self._slots.pop(mark, 0)
        if slot and self._table >= 0:
            self._free.append(slot)
            self._write(slot, "")

    def close(self) -> None:
        """Let the shell go; what still runs is ended by it, and nobody waits for that."""
        is_clean = not (self._slots or self._session)
        self._stop_watching()
        if is_clean and self._table >= 0:
            os.ftruncate(self._table, 0)
        self.disown()
        if self._shell is not None and is_clean:
            self._shell.wait()
        self._shell = None

    def disown(self) -> None:
        """For a process that was forked off this one: it does not keep anything alive."""
        for descriptor in (self._pipe, self._table):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._table = -1

    def _write(self, slot: int, line: str) -> None:
        """One write, so that it is there as a whole or not at all."""
        data = line.encode("utf-8", "surrogateescape").ljust(SLOT - 1, b" ") + b"\n"
        os.pwrite(self._table, data, slot * SLOT)

    def _ensure_shell(self) -> None:
        """Raises StartError."""
        if self._shell is not None and self._shell.poll() is None:
            return
        is_lost = self._shell is not None and bool(self._slots or self._session)
        self._start()
        self._stop_watching()
        self._watch()
        if is_lost:
            self._tell("another one watches them now")

    def _watch(self) -> None:
        self._pidfd = -1 if self._shell is None else open_pidfd(self._shell.pid)
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._shell_ended)

    def _stop_watching(self) -> None:
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _shell_ended(self) -> None:
        """Nobody watches what runs."""
        self._stop_watching()
        if not (self._slots or self._session):
            return  # the next command starts another one
        if self._loop.time() < self._restarted + PAUSE:
            self._restart = self._loop.call_later(PAUSE, self._shell_ended)
            return
        self._restarted = self._loop.time()
        try:
            self._ensure_shell()
        except CruError as error:
            self._restart = self._loop.call_later(PAUSE, self._shell_ended)
            self._tell(
                f"none can be started in its place, and a kill -9 of cru would leave them running: {error.message}"
            )

    def _tell(self, rest: str) -> None:
        """Once each: whoever ends it may do so again and again."""
        if rest not in self._told:
            self._told.add(rest)
            for listener in tuple(self._listeners):
                listener(f"something ended the process that ends commands if cru is killed; {rest}")

    def _start(self) -> None:
        if self._table < 0:
            self._table = _unnamed_file()
        read, write = os.pipe()
        argv = (SHELL, "-c", SOURCE, sys.executable, str(SWEEP), str(self._table))
        try:
            self._shell = subprocess.Popen(
                argv, stdin=read, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
                pass_fds=(self._table,),
            )  # fmt: skip
        except OSError as error:
            os.close(write)
            raise start_error(error, SHELL, Path("/")) from error
        finally:
            os.close(read)
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = write


def make_guardian(loop: asyncio.AbstractEventLoop) -> Guardian:
    """Of the children of this loop."""
    return Guardian(loop, getattr(loop, "guardian_listeners", ()))


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("cru-children")
    import tempfile

    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return descriptor
