"""One child process in a session of its own, with its pipes on the event loop: what `process` and command hooks are made of.

No thread a child where Linux has pidfds (about 0.1 ms over a bare spawn and wait); elsewhere one thread waits for the exit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from cru.events.scope import check
from cru.process.capture import PIECE
from cru.process.descent import MARK, members
from cru.process.running import RUNNING

LINGER = 0.2
"""Seconds for which output is awaited that something else keeps open, once the child itself is gone."""

Sink: TypeAlias = Callable[[bytes], None]


class Child:
    """The process, its pipes and its pidfd. It stays a zombie until close(), so its id cannot be reused.

    `sink` gets what it prints; with `errors`, standard error comes there, else both come through one pipe. `stdin` is written as
    fast as the child reads; one that never reads it, or closes it, is as good; or it is a descriptor to hand on. A child that is not
    `alone` stays in this session, as a group of its own: it has our terminal. By its `mark` everything below it is found.
    Raises OSError or ValueError if it cannot be started, CancelledError in what was interrupted.
    """

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        sink: Sink,
        *,
        errors: Sink | None = None,
        stdin: bytes | int = b"",
        alone: bool = True,
        mark: str = "",
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[bool] | None = None
        self._gone = self._lingered = False
        self._timer: asyncio.TimerHandle | None = None
        self._alone = alone
        self._left = memoryview(b"" if isinstance(stdin, int) else stdin)
        self._given = stdin if isinstance(stdin, int) else subprocess.DEVNULL
        self._input = -1
        self._outputs: dict[int, Sink] = {}
        check()
        self._mark = mark
        env = {**env, MARK: mark} if mark else env
        self._process = self._start(argv, cwd, env, [sink] if errors is None else [sink, errors])
        self.pid = self._process.pid
        RUNNING[self.pid] = self.kill
        for pipe in self._outputs:
            self._loop.add_reader(pipe, self._readable, pipe)
        if self._input >= 0:
            self._loop.add_writer(self._input, self._write)
        self._pidfd = _pidfd(self.pid)
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._exited)
        else:
            _wait_in_thread(self._process, self._loop, self._exited)

    def _start(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], sinks: Sequence[Sink]
    ) -> subprocess.Popen[bytes]:
        theirs: list[int] = []
        try:
            for sink in sinks:
                read, write = os.pipe()
                theirs.append(write)
                self._outputs[read] = sink
                os.set_blocking(read, False)
            given = self._open_input(theirs) if self._left else self._given
            out, err = theirs[0], theirs[len(sinks) - 1]
            return subprocess.Popen(
                argv, stdin=given, stdout=out, stderr=err, cwd=cwd, env=env,
                start_new_session=self._alone, process_group=None if self._alone else 0,
            )  # fmt: skip
        except BaseException:
            for pipe in (*self._outputs, *([self._input] if self._input >= 0 else [])):
                os.close(pipe)
            raise
        finally:
            for pipe in theirs:
                os.close(pipe)

    def _open_input(self, theirs: list[int]) -> int:
        """What fits into the pipe is in it before the child starts: mostly that is all."""
        read, self._input = os.pipe()
        theirs.append(read)
        os.set_blocking(self._input, False)
        self._left = self._left[os.write(self._input, self._left) :]
        if not self._left:
            os.close(self._input)
            self._input = -1
        return read

    @property
    def ended(self) -> bool:
        return self._gone and (not self._outputs or self._lingered)

    async def wait(self, seconds: float) -> bool:
        """True if the time was over first. May be called again."""
        if self.ended:
            return False
        self._done = self._loop.create_future()
        timer = self._loop.call_later(seconds, self.finish, True)
        try:
            return await self._done
        finally:
            timer.cancel()

    def finish(self, timed_out: bool = False) -> None:
        """Ends the wait, whatever the child does."""
        if self._done is not None and not self._done.done():
            self._done.set_result(timed_out)

    def signal(self, number: signal.Signals) -> None:
        """To the group at once, and to what moved into a group or a session of its own (`timeout`, job control, `setsid`)."""
        for pid in (-self.pid, *(members(self.pid, self._mark, self._alone) or ())):
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def alive(self) -> bool:
        """Whether anything of it runs."""
        found = members(self.pid, self._mark, self._alone)
        return not (self._gone and not self._outputs) if found is None else bool(found)

    def kill(self) -> None:
        """End all of it now."""
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

    def close(self) -> tuple[int, int]:
        """Reap it and let go of everything; gives (exit status, group of what was left behind or 0)."""
        if self._timer is not None:
            self._timer.cancel()
        behind = self.pid if self._lingered and self._outputs else 0
        for pipe in tuple(self._outputs):
            self._close_output(pipe)
        self._close_input()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:  # it hangs inside the kernel; nobody can end it
            code = -signal.SIGKILL
        RUNNING.pop(self.pid, None)
        return code, behind

    def _readable(self, pipe: int) -> None:
        self._read(pipe)
        if self.ended:
            self.finish()

    def _read(self, pipe: int) -> bool:
        """One read; False if there was nothing to read."""
        try:
            data = os.read(pipe, PIECE)
        except BlockingIOError:
            return False
        if data:
            self._outputs[pipe](data)
        else:
            self._close_output(pipe)
        return bool(data)

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._input, self._left[:PIECE]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it reads no further
            self._left = self._left[:0]
        if not self._left:
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
            self.finish()
        else:
            self._timer = self._loop.call_later(LINGER, self._linger)

    def _linger(self) -> None:
        self._lingered = True
        self.finish()


def _pidfd(pid: int) -> int:
    """A descriptor that becomes readable when the process exits, or -1 where there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


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
