"""One child process in a session of its own, with its pipes on the event loop: what every run of a program is made of.

No thread a child where Linux has pidfds (about 0.1 ms over a bare spawn and wait); elsewhere one thread waits for the exit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from cru.core.base.process.capture import PIECE
from cru.core.base.process.errors import start_error
from cru.core.base.process.guardian import Guardian, make_guardian
from cru.core.base.process.marks import VARIABLE, new_mark, numbered, open_pidfd
from cru.core.base.values.cancellation import check

LINGER = 0.2

Sink: TypeAlias = Callable[[bytes], object]
"""Gets output as it comes; what it returns ends the wait for the child if it is true."""


Children: TypeAlias = dict[int, Callable[[], None]]
"""What ends each child that nobody has reaped yet with all that it started, by process id; may be called in any thread. An event
loop that has an attribute `children` knows its children, for a process that must leave in a hurry; one that has an attribute
`guardian`, None at first, ends those that are marked even if the process is killed; its `guardian_listeners`, a list, hear if something
ended what does that (cru.core.base.process.guardian.Listener)."""


class Program(Struct, frozen=True):
    """A program to run.

    argv: itself and its arguments
    cwd: the folder that it runs in
    env: its whole environment
    stdin: what it reads, or a descriptor to hand on; a program that never reads it, or closes it, is as good
    own_session: whether it leaves this session; else it is a group of it, and has our terminal
    is_marked: whether everything below it is found by a mark, too, and ends if this process dies
    is_bound: it is marked, and what it leaves running when it ends itself ends with this process, too
    outlives_us: nothing but itself ends it, whatever becomes of this process
    has_monitor: argv only watches over the program, and dies of what would ask that one to end: it hears no such signal
    descriptors: further ones that it gets, by the same numbers
    linger: seconds for which output is awaited that something else keeps open, once the child itself is gone; None: until it is closed
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes | int = b""
    own_session: bool = True
    is_marked: bool = False
    is_bound: bool = False
    outlives_us: bool = False
    has_monitor: bool = False
    linger: float | None = LINGER
    descriptors: tuple[int, ...] = ()


class Child:
    """The process, its pipes and its pidfd. It stays a zombie until close(), so its id cannot be reused.

    Each output goes to a sink, or to a descriptor; without one for standard error, that comes where standard output does.
    Raises StartError if it cannot be started, CancelledError in what was interrupted.
    """

    def __init__(self, program: Program, stdout: Sink | int, stderr: Sink | int | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[bool] | None = None
        self._gone = self._lingered = False
        self._timer: asyncio.TimerHandle | None = None
        self._program = program
        self._unwritten = memoryview(b"" if isinstance(program.stdin, int) else program.stdin)
        self._input = -1
        self._outputs: dict[int, Sink] = {}
        self.exit_status: int | None = None
        """Negative for a signal; None until close()."""
        check()
        is_marked = program.is_marked or program.is_bound
        self._mark = new_mark(program.env, is_bound=program.is_bound) if is_marked else ""
        self._guardian: Guardian | None = None
        if self._mark and hasattr(self._loop, "guardian"):
            self._guardian = self._loop.guardian = self._loop.guardian or make_guardian(self._loop)
        self._process = self._start_guarded(stdout, stderr)
        self.pid = self._process.pid
        self._started = time.monotonic()
        self._siblings: Children = {} if program.outlives_us else getattr(self._loop, "children", {})
        self._siblings[self.pid] = self.kill
        for pipe in self._outputs:
            self._loop.add_reader(pipe, self._readable, pipe)
        if self._input >= 0:
            self._loop.add_writer(self._input, self._write)
        self._pidfd = open_pidfd(self.pid)
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._exited)
        else:
            _wait_in_thread(self._process, self._loop, self._exited)

    def _start_guarded(self, stdout: Sink | int, stderr: Sink | int | None) -> subprocess.Popen[bytes]:
        guardian = self._guardian
        if guardian is None:
            return self._start(stdout, stderr)
        if self._program.is_bound:
            guardian.bind(self._mark.rpartition(".")[0])
        guardian.expect(self._mark, is_bound=self._program.is_bound)
        try:
            process = self._start(stdout, stderr)
        except BaseException:
            guardian.remove(self._mark)
            raise
        guardian.add(self._mark, process.pid)
        return process

    def _start(self, stdout: Sink | int, stderr: Sink | int | None) -> subprocess.Popen[bytes]:
        program = self._program
        child_ends: list[int] = []
        try:
            out = self._open_output(stdout, child_ends)
            err = out if stderr is None else self._open_output(stderr, child_ends)
            with numbered(self._mark):
                return subprocess.Popen(
                    program.argv,
                    stdin=self._open_input(child_ends),
                    stdout=out,
                    stderr=err,
                    cwd=program.cwd,
                    env={**program.env, VARIABLE: self._mark} if self._mark else program.env,
                    start_new_session=program.own_session,
                    process_group=None if program.own_session else 0,
                    pass_fds=program.descriptors,
                )
        except BaseException as error:
            for pipe in (*self._outputs, *([self._input] if self._input >= 0 else [])):
                os.close(pipe)
            if isinstance(error, OSError | ValueError):
                raise start_error(error, program.argv[0], program.cwd) from error
            raise
        finally:
            for pipe in child_ends:
                os.close(pipe)

    def _open_output(self, output: Sink | int, child_ends: list[int]) -> int:
        if isinstance(output, int):
            return output
        read, write = os.pipe()
        child_ends.append(write)
        self._outputs[read] = output
        os.set_blocking(read, False)
        return write

    def _open_input(self, child_ends: list[int]) -> int:
        """What fits into the pipe is in it before the child starts: mostly that is all."""
        if isinstance(self._program.stdin, int):
            return self._program.stdin
        if not self._unwritten:
            return subprocess.DEVNULL
        read, self._input = os.pipe()
        child_ends.append(read)
        os.set_blocking(self._input, False)
        self._unwritten = self._unwritten[os.write(self._input, self._unwritten) :]
        if not self._unwritten:
            os.close(self._input)
            self._input = -1
        return read

    @property
    def mark(self) -> str:
        """What all that it starts carries; "": nothing."""
        return self._mark

    @property
    def ended(self) -> bool:
        return self._gone and (not self._outputs or self._lingered)

    async def wait(self, seconds: float | None = None) -> bool:
        """True if the time was over first. May be called again, by one at a time."""
        if self.ended:
            return False
        self._done = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, self._finish, True)
        try:
            return await self._done
        finally:
            if timer is not None:
                timer.cancel()

    def _finish(self, timed_out: bool = False) -> None:
        """Ends the wait, whatever the child does."""
        if self._done is not None and not self._done.done():
            self._done.set_result(timed_out)

    def signal(self, number: signal.Signals) -> None:
        """To the group at once, and to what moved into a group or a session of its own (`timeout`, job control, `setsid`), as far as a look
        of the last moments found it."""
        pids = [-self.pid, *(self._members(self._started) or ())]
        if self._program.has_monitor and number != signal.SIGKILL:
            pids = [pid for pid in pids if abs(pid) != self.pid]
        for pid in pids:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def alive(self, since: float | None = None) -> bool:
        """Whether anything of it runs, or did at some time after that moment (time.monotonic)."""
        running = self._members(since)
        return not (self._gone and not self._outputs) if running is None else bool(running)

    def _members(self, since: float | None) -> list[int] | None:
        from cru.core.base.process.descent import Root, members  # most commands end without a look at all processes

        return members(Root(self.pid, self._mark, self._program.own_session), since=since)

    def kill(self) -> None:
        """End all of it now. May be called in any thread."""
        for _ in range(10):  # a process may fork between the look and the signal
            self.signal(signal.SIGKILL)
            if not self.alive():
                break

    def drain(self) -> None:
        """Read what the pipes still hold."""
        for pipe in tuple(self._outputs):
            for _ in range(32):
                if not self._read(pipe):
                    break

    def release(self) -> None:
        """Let go of one that outlives us, instead of close()."""
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._process.returncode = 0  # unknown for ever: nobody waits for it

    def close(self) -> int:
        """Reap it and let go of everything; the group of what it left running with its output open, or 0."""
        if self._timer is not None:
            self._timer.cancel()
        left_behind = self.pid if self._lingered and self._outputs else 0
        for pipe in tuple(self._outputs):
            self._close_output(pipe)
        self._close_input()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        try:
            self.exit_status = self._process.wait(1)
        except subprocess.TimeoutExpired:  # it hangs inside the kernel; nobody can end it
            self.exit_status = -signal.SIGKILL
        self._siblings.pop(self.pid, None)
        if self._guardian is not None:
            self._guardian.remove(self._mark)
        return left_behind

    def _readable(self, pipe: int) -> None:
        self._read(pipe)
        if self.ended:
            self._finish()

    def _read(self, pipe: int) -> bool:
        """One read; False if there was nothing to read."""
        try:
            data = os.read(pipe, PIECE)
        except BlockingIOError:
            return False
        if not data:
            self._close_output(pipe)
        elif self._outputs[pipe](data):
            self._finish()
        return bool(data)

    def _write(self) -> None:
        try:
            self._unwritten = self._unwritten[os.write(self._input, self._unwritten[:PIECE]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it reads no further
            self._unwritten = self._unwritten[:0]
        if not self._unwritten:
            self._close_input()

    def _close_output(self, pipe: int) -> None:
        self._loop.remove_reader(pipe)
        os.close(pipe)
        del self._outputs[pipe]

    def _close_input(self) -> None:
        if self._input >= 0:
            self._loop.remove_writer(self._input)
            os.close(self._input)
            self._input = -1

    def _exited(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        self._gone = True
        self._close_input()
        self.drain()  # mostly that is the rest, and the end
        if not self._outputs:
            self._finish()
        elif self._program.linger is not None:
            self._timer = self._loop.call_later(self._program.linger, self._linger)

    def _linger(self) -> None:
        self._lingered = True
        self._finish()


def _wait_in_thread(
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, exited: Callable[[], None]
) -> None:
    import threading

    def wait() -> None:
        process.wait()
        try:
            loop.call_soon_threadsafe(exited)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    threading.Thread(target=wait, daemon=True).start()
