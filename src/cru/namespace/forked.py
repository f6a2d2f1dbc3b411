"""Computations on what a plugin gave that nobody can bound beforehand: in a child process, which time and memory end.

A fork, so that nothing is loaded or copied on the way there (about 5 ms); what is known to be small is not worth it.
"""

from __future__ import annotations

import marshal
import os
import signal
from collections.abc import Callable
from typing import Any

from cru.namespace.host import BadArgument
from cru.values.errors import CruError

SECONDS = 5.0
MEMORY = 1 << 30
LARGEST = 64 << 20
"""Bytes of an answer."""


def run_in_fork(where: str, function: Callable[..., Any], *args: Any) -> Any:
    """What the function returns (plain data), computed in a child process. Raises what it raised as BadArgument, and BadArgument if it took
    more than 5 s, more than 1 GiB of memory or gave more than 64 MiB."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(write, function, args)
    os.close(write)
    ended: int | None = None
    try:
        data = _all(read)
        if len(data) > LARGEST:
            raise BadArgument(f"{where}: the result is larger than {LARGEST >> 20} MiB")
        _, ended = os.waitpid(pid, 0)
    finally:
        os.close(read)
        if ended is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    if ended:
        raise BadArgument(f"{where}: {_why(ended)}")
    value, problem = marshal.loads(data)
    if problem is not None:
        raise BadArgument(*problem)
    return value


def _all(pipe: int) -> bytes:
    """What comes until the other end closes, or a little more than may come."""
    pieces: list[bytes] = []
    size = 0
    while size <= LARGEST and (piece := os.read(pipe, 1 << 20)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _why(ended: int) -> str:
    if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGALRM:
        return f"took longer than {SECONDS:g} s"
    if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGINT:
        return "interrupted"
    return f"needs more than {MEMORY >> 20} MiB of memory"


def _child(pipe: int, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Nothing but the answer leaves this process: neither an exception nor what was open when it began."""
    code = 1
    try:
        _bounded(pipe)
        answer: tuple[Any, tuple[str, str] | None]
        try:
            answer = function(*args), None
        except CruError as error:
            answer = None, (error.message, error.hint)
        except MemoryError:
            return
        except Exception as error:  # noqa: BLE001  reported by the parent
            answer = None, (f"{type(error).__name__}: {error}", "")
        data = memoryview(marshal.dumps(answer))
        while data:
            data = data[os.write(pipe, data) :]
        code = 0
    finally:
        os._exit(code)


def _bounded(pipe: int) -> None:
    import resource

    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    os.closerange(0, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))  # a lock on a file, above all
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = _size() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _size() -> int:
    """Bytes of address space that this process has, 0 where that cannot be read."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0
