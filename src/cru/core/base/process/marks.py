"""How a process is recognised: by when it started, and by what everything below a child carries, wherever it moves.

A process id is given anew, so that it alone proves nothing later. What is carried is a variable of the environment, and a number.

The variable is lost with the environment (`env -i`). The number is the soft limit of file locks (RLIMIT_LOCKS): Linux has asked nobody
for it since 2.4.25 (getrlimit(2)), hands it on to children, keeps it across exec, and lets it be read of other processes. It is gone
where somebody sets that limit, as a login does (sudo, su). docs/decisions/background.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from threading import RLock

VARIABLE = "CRU_CHILD"
LONGEST = 400
"""Characters of the marks of those above us that ours goes on with: of a run in a run in a run …"""
_LIMIT = 10  # RLIMIT_LOCKS, for which Python has no name
_TOP = 1 << 62
_PROGRAM_BITS = 20
_SECONDS = (1 << 19) - 1
_SESSION, _PROGRAM = 0, 1

_counters: dict[int, Iterator[int]] = {}
_begins: dict[int, int] = {}
"""Both by process id: one that was forked off this one counts anew."""


def session_mark(env: Mapping[str, str]) -> str:
    """The mark of all that ends with this process: those of `new_mark` with `is_bound` are this one, a dot and a number."""
    return _series_mark(env, _SESSION, os.getpid())


def new_mark(env: Mapping[str, str], *, is_bound: bool = False) -> str:
    """A mark of its own for a child with this environment, behind that of the child that we are. `is_bound`: what it leaves running ends
    with this process."""
    pid = os.getpid()
    counter = _counters.setdefault(pid, count())
    series = _series_mark(env, _SESSION if is_bound else _PROGRAM, pid)
    return f"{series}.{next(counter) % (1 << _PROGRAM_BITS)}"


def _series_mark(env: Mapping[str, str], kind: int, pid: int) -> str:
    """Return a mark whose number no other process of these days has: it is made of the process id and of when that began to count."""
    outer = env.get(VARIABLE, "")
    if len(outer) > LONGEST or not outer.isprintable():
        outer = ""
    began = _begins.setdefault(pid, int(time.monotonic())) & _SECONDS
    return f"{outer}/{pid}.{(pid << 20) | (began << 1) | kind}"


def numbers_of(mark: str) -> range:
    """The numbers that stand for a mark: one of a child, many of a session, none of what is no mark."""
    series, _, number = mark.rpartition("/")[2].partition(".")[2].partition(".")
    if not series.isdecimal() or (number and not number.isdecimal()):
        return range(0)
    first = _TOP + (int(series) << _PROGRAM_BITS)
    return range(first + int(number), first + int(number) + 1) if number else range(first, first + (1 << _PROGRAM_BITS))


def is_given_by(mark: str, pid: int) -> bool:
    """Whether it is that of one child, and a process with this id gave it."""
    return len(numbers_of(mark)) == 1 and mark.rpartition("/")[2].startswith(f"{pid}.")


@lru_cache(maxsize=1)
def has_numbers() -> bool:
    """Whether processes can be given one here."""
    if sys.platform != "linux" or not os.path.isdir("/proc/self"):
        return False
    import resource

    return resource.getrlimit(_LIMIT)[1] == resource.RLIM_INFINITY


def number_of(pid: int) -> int:
    """That of a process, 0 if it has none or nobody may know it."""
    if sys.platform != "linux":
        return 0
    import resource

    try:
        number = resource.prlimit(pid, _LIMIT)[0]
    except (OSError, ValueError):  # it is gone, or somebody else's
        return 0
    return number if number >= _TOP else 0


@contextmanager
def numbered(mark: str) -> Iterator[None]:
    """Give each process that is started in this block the number of a mark, where the system has such numbers."""
    numbers = numbers_of(mark)
    if not numbers or not has_numbers():
        yield
        return
    import resource

    with _starting:  # two threads would restore each other's number, and this process would keep one
        before = resource.prlimit(0, _LIMIT, (numbers[0], resource.RLIM_INFINITY))
        try:
            yield
        finally:
            resource.prlimit(0, _LIMIT, before)


def _start_anew() -> None:
    """In a process that was forked off this one, whose other threads are not there."""
    global _starting
    _starting = RLock()


_starting = RLock()
os.register_at_fork(after_in_child=_start_anew)


def is_of_one_process(number: int, numbers: range) -> bool:
    """Whether one process has given this number and those of a mark."""
    return bool(numbers) and number >> (_PROGRAM_BITS + 1) == numbers[0] >> (_PROGRAM_BITS + 1)


def carries_variable(pid: int, mark: str) -> bool:
    """Whether its environment has this mark, or that of a child below."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = b"\0" + file.read()
    except OSError:  # it is gone, or somebody else's
        return False
    variable = f"\0{VARIABLE}={mark}".encode("utf-8", "surrogateescape")
    at = environment.find(variable)
    return at >= 0 and environment[at + len(variable) :][:1] in (b"", b"\0", b"/", b".")


BOOT = "/proc/sys/kernel/random/boot_id"


def process_identity(pid: int) -> str:
    """What only this process has: when it started, of which start of the machine; "" if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return "" if os.path.isdir("/proc/self") else ask_ps(pid)
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else f"{_boot()}.{fields[19].decode()}"


def is_of_this_boot(identity: str) -> bool:
    """Whether that process ran since the machine started; False where nobody can say."""
    boot = _boot()
    return bool(boot) and identity.startswith(f"{boot}.")


def open_pidfd(pid: int) -> int:
    """A descriptor that becomes readable when the process exits, or -1 where there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def ticks_now() -> int:
    """Of the clock that says when a process started; 0 where there is none."""
    return (
        int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        if hasattr(time, "CLOCK_BOOTTIME")
        else 0
    )


def signal_all(pids: list[int], *numbers: signal.Signals) -> None:
    """Those that are there yet, and ours."""
    for pid in pids:
        for number in numbers:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass


def _boot() -> str:
    try:
        with open(BOOT, encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return ""


def ask_ps(pid: int) -> str:
    """Where there is no /proc."""
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "_".join(asked.stdout.split())
