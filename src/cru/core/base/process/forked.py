"""Computations whose time and memory nobody can bound beforehand: in a child process, which its limits end.

A fork, so that nothing is loaded or copied on the way there (about 5 ms); what is known to be small is not worth it.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar, runtime_checkable

from cru.core.base.values.errors import CruError

SECONDS = 5.0
MEMORY = 1 << 30
"""Bytes beyond what the process has already."""
LARGEST = 64 << 20
"""Bytes of a result."""
T = TypeVar("T")


class WorkFailed(CruError):
    """The work raised an error, whose words these are."""


class WorkEnded(CruError):
    """The work passed a limit, or was interrupted."""


@runtime_checkable
class ComputationOwner(Protocol):
    """An event loop that stands still for computations, and hears signals in another thread meanwhile: it kills them."""

    def begin_computation(self, pid: int) -> None: ...

    def end_computation(self, pid: int) -> bool:
        """Whether it was killed."""


def run_in_fork(work: Callable[[], T]) -> T:
    """What the work returns (plain data), computed in a child process. Raises WorkFailed, and WorkEnded if it took more than 5 s, more
    than 1 GiB of memory, gave more than 64 MiB, or was interrupted."""
    read, write = os.pipe()
    pid = fork_deaf()
    if pid == 0:
        _compute(write, work)
    os.close(write)
    status: int | None = None
    owner = _owner()
    if owner is not None:
        owner.begin_computation(pid)
    is_interrupted = False
    try:
        try:
            data = _read_all(read)
        finally:
            is_interrupted = owner is not None and owner.end_computation(pid)
        if len(data) > LARGEST:
            raise WorkEnded(f"the result is larger than {LARGEST >> 20} MiB")
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(read)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    if status:
        raise WorkEnded("interrupted" if is_interrupted else _limit(status))
    answer: tuple[T, tuple[str, str] | None] = marshal.loads(data)
    result, problem = answer
    if problem is not None:
        raise WorkFailed(*problem)
    return result


def fork_deaf() -> int:
    """Fork as `os.fork` does. In the child every signal that Python handles has its default effect, and those that come meanwhile wait for
    that: Python's handler would else run between the functions that the child calls after the fork, and print what it raises there."""
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            for number in signal.valid_signals():
                if callable(signal.getsignal(number)):
                    signal.signal(number, signal.SIG_DFL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
    return pid


def _owner() -> ComputationOwner | None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return loop if isinstance(loop, ComputationOwner) else None


def _read_all(pipe: int) -> bytes:
    """What comes until the other end closes, or a little more than may come."""
    pieces: list[bytes] = []
    size = 0
    while size <= LARGEST and (piece := os.read(pipe, 1 << 20)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _limit(status: int) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return f"took longer than {SECONDS:g} s"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT:
        return "interrupted"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGSEGV, signal.SIGBUS):
        return "calls itself without end, or is nested too deep"
    return f"needs more than {MEMORY >> 20} MiB of memory"


def _compute(pipe: int, work: Callable[[], Any]) -> NoReturn:
    """Nothing but the answer leaves this process: neither an exception nor what was open when it began."""
    code = 1
    try:
        _limit_process(pipe)
        answer: tuple[Any, tuple[str, str] | None]
        try:
            answer = work(), None
        except CruError as error:
            answer = None, (error.message, error.hint)
        except MemoryError:
            os._exit(code)
        except Exception as error:  # noqa: BLE001  reported by the parent
            answer = None, (f"{type(error).__name__}: {error}", "")
        data = memoryview(marshal.dumps(answer))
        while data:
            data = data[os.write(pipe, data) :]
        code = 0
    finally:
        os._exit(code)


def _limit_process(pipe: int) -> None:
    import resource

    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):  # one of Python's: nobody would run it
            signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    os.closerange(0, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))  # a lock on a file, above all
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_memory(MEMORY)


def limit_memory(extra_bytes: int) -> None:
    """Let this process have at most so many bytes beyond what it has already."""
    import resource

    most = _address_space() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _address_space() -> int:
    """Bytes of address space that this process has, 0 where that cannot be read."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0
