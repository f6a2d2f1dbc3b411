"""One child process in a session of its own: output and errors through one pipe, ended with everything it started.

No thread a child where Linux has pidfds (about 0.1 ms over a bare spawn and wait); elsewhere one thread waits for the exit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cru.tools.capture import LIMIT, PIECE, Capture
from cru.tools.protocol import ToolError

LINGER = 0.2
GRACE = 2.0


class Ended(Struct, frozen=True):
    """What came of a child. `code` is its exit status, negative for a signal. `background` is the process group of what it
    left running with its output open, or 0. `cut`: more output than the limit."""

    output: str
    code: int
    timed_out: bool = False
    background: int = 0
    cut: bool = False


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,  # noqa: ASYNC109  (a result of its own, not an exception)
    emit: Callable[[str], None] | None = None,
    limit: int = LIMIT,
    end_at_limit: bool = False,
) -> Ended:
    """Run `argv` to its end. Times in seconds, `limit` in characters. Raises ToolError if it cannot be started.

    After `timeout`, when cancelled, or at the limit if asked so, all of the child's session is ended: SIGTERM, two seconds,
    SIGKILL. Once the child itself is gone, output that something else keeps open is awaited for 0.2 s more.
    """
    capture = Capture(emit, limit)
    child = _Child(argv, cwd, env, capture, end_at_limit)
    try:
        timed_out = await child.wait(timeout)
    finally:
        try:
            if not child.ended:
                await child.end()
        finally:
            code, background = child.close()
            output = capture.close()
    return Ended(output, code, timed_out, background, capture.left_out > 0)


class _Child:
    """The process, the read end of its pipe and its pidfd. It stays a zombie until close(), so its id cannot be reused."""

    def __init__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], capture: Capture, end_at_limit: bool
    ) -> None:
        self._capture = capture
        self._end_at_limit = end_at_limit
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[bool] = self._loop.create_future()
        self._eof = self._gone = self._lingered = False
        self._timer: asyncio.TimerHandle | None = None
        self._process, self._pipe = _start(argv, cwd, env)
        self._pidfd = _pidfd(self._process.pid)
        self._loop.add_reader(self._pipe, self._readable)
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._exited)
        else:
            _wait_in_thread(self._process, self._loop, self._exited)

    @property
    def ended(self) -> bool:
        return self._gone and (self._eof or self._lingered)

    async def wait(self, seconds: float) -> bool:
        """True if the time was over first."""
        timer = self._loop.call_later(seconds, self._finish, True)
        try:
            return await self._done
        finally:
            timer.cancel()

    async def end(self) -> None:
        """End the whole session; a second cancellation only cuts the grace short."""
        try:
            self._signal(signal.SIGTERM)
            deadline = self._loop.time() + GRACE
            while self._alive() and self._loop.time() < deadline:  # noqa: ASYNC110  (nothing tells of it)
                await asyncio.sleep(0.01)
        finally:
            for _ in range(10):  # a process may fork between the look and the signal
                self._signal(signal.SIGKILL)
                if not self._alive():
                    break
            for _ in range(32):  # what the pipe still holds
                if self._eof or not self._read():
                    break

    def close(self) -> tuple[int, int]:
        """Reap it and let go of everything; gives (exit status, group of what was left behind or 0)."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:  # it hangs inside the kernel; nobody can end it
            code = -signal.SIGKILL
        return code, self._process.pid if self._lingered and not self._eof else 0

    def _finish(self, timed_out: bool = False) -> None:
        if not self._done.done():
            self._done.set_result(timed_out)

    def _readable(self) -> None:
        self._read()
        if self._eof:
            self._loop.remove_reader(self._pipe)
        if self.ended or (self._end_at_limit and self._capture.left_out):
            self._finish()

    def _read(self) -> bool:
        """One read; False if there was nothing to read."""
        try:
            data = os.read(self._pipe, PIECE)
        except BlockingIOError:
            return False
        if data:
            self._capture.feed(data)
        else:
            self._eof = True
        return bool(data)

    def _exited(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        self._gone = True
        if self._eof:
            self._finish()
        elif not self._done.done():
            self._timer = self._loop.call_later(LINGER, self._linger)

    def _linger(self) -> None:
        self._lingered = True
        self._finish()

    def _signal(self, number: signal.Signals) -> None:
        """To the group at once, and to what moved into a group of its own (`timeout`, job control)."""
        for pid in (-self._process.pid, *(_session(self._process.pid) or ())):
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def _alive(self) -> bool:
        members = _session(self._process.pid)
        return not (self._gone and self._eof) if members is None else bool(members)


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    read, write = os.pipe()
    try:
        os.set_blocking(read, False)
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=write, stderr=write, cwd=cwd, env=env, start_new_session=True
        )
    except (OSError, ValueError) as error:
        os.close(read)
        raise ToolError(*_why(error, argv, cwd)) from error
    finally:
        os.close(write)
    return process, read


def _why(error: OSError | ValueError, argv: Sequence[str], cwd: Path) -> tuple[str, str]:
    import errno

    if isinstance(error, ValueError):
        return f"cannot run it: {error}", "a command cannot hold a NUL character"
    if error.errno == errno.E2BIG:
        return "cannot run it: the command is too long", "write it to a file and run that"
    if not cwd.is_dir():
        return f"cannot run it: the folder {cwd} is gone", ""
    return f"cannot start {argv[0]}: {error.strerror}", ""


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


def _session(leader: int) -> list[int] | None:
    """The live processes of a session; None where there is no /proc to look them up."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    found = []
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, _parent, _group, session = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(session) == leader and state not in (b"Z", b"X"):
            found.append(int(name))
    return found
