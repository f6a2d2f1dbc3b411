"""What ends running commands if this process dies without a chance to: kill -9, the OOM killer, a crash of the interpreter.

A shell waits in a session of its own for the end of a pipe that only we hold open; then it becomes `sweep.py`. It costs one start a
session and 0.3 MB; each command costs two short writes into a table that has no name on disk. (A parent-death signal would reach the
child alone, not what it started, and takes away the fast way to start it; docs/decisions/0038 has the figures.)
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cru.process.errors import start_error

SHELL = "/bin/sh"
SWEEP = Path(__file__).with_name("sweep.py")
SOURCE = """
trap '' HUP INT QUIT TERM USR1 USR2
while read -r _; do :; done
[ -e "/dev/fd/$2" ] && ! [ -s "/dev/fd/$2" ] || exec "$0" -I -S "$1" "$2"
"""
LARGEST = 64 * 1024
"""Bytes of a table that is written anew without what has ended."""


class Guardian:
    """Knows the children that must not outlive this process; the shell is started with the first. Belongs to the loop's thread."""

    def __init__(self) -> None:
        self._pipe = self._table = -1
        self._size = 0
        self._shell: subprocess.Popen[bytes] | None = None
        self._leaders: dict[str, int] = {}

    @property
    def pid(self) -> int:
        """Of the shell; 0: there is none."""
        return 0 if self._shell is None else self._shell.pid

    def expect(self, mark: str) -> None:
        """A child with this mark is about to start. Raises StartError if nobody could watch it."""
        if self._shell is None or self._shell.poll() is not None:
            self._start()
        self._leaders[mark] = 0
        self._write(f"+{mark}\n")

    def add(self, mark: str, pid: int) -> None:
        """It has started."""
        self._leaders[mark] = pid
        self._write(f"={pid} {mark}\n")

    def remove(self, mark: str) -> None:
        """It has ended, or did not start."""
        if self._leaders.pop(mark, None) is None or self._table < 0:
            return
        if not self._leaders:
            self._size = 0
            os.ftruncate(self._table, 0)
        elif self._size < LARGEST:
            self._write(f"-{mark}\n")
        else:
            os.ftruncate(self._table, 0)
            self._size = 0
            self._write("".join(f"+{mark}\n={pid} {mark}\n" for mark, pid in self._leaders.items()))

    def close(self) -> None:
        """Let the shell go; what still runs is ended by it, and nobody waits for that."""
        self.disown()
        if self._shell is not None and not self._leaders:
            self._shell.wait()
        self._shell = None

    def disown(self) -> None:
        """For a process that was forked off this one: it does not keep anything alive."""
        for descriptor in (self._pipe, self._table):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._table = -1

    def _write(self, text: str) -> None:
        """One write, so that it is there as a whole or not at all."""
        data = text.encode("utf-8", "surrogateescape")
        os.pwrite(self._table, data, self._size)
        self._size += len(data)

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


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("cru-children")
    import tempfile

    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return descriptor
