"""A program of its own (`python -I -S sweep.py TABLE`): ends what a process left running that has died (guardian.py)."""

import os
import signal
import sys
import time
from typing import NamedTuple

GRACE = 2.0
"""Seconds from the request to end until what is left is killed."""
MOST = 10.0
"""Seconds for all of it: what hangs inside the kernel ends when it can."""
PAUSE = 0.02


class Watched(NamedTuple):
    """What is to end.

    mark: of a child, or of all that was to end with the process
    pid: 0: nobody knew it yet, or there is no child that it stands for
    ticks: of the clock when it had started
    """

    mark: str
    pid: int = 0
    ticks: int = 0


def read_table(text: str) -> list[Watched]:
    """What had not ended. A line that is not whole does not count."""
    watched = []
    for line in text.split("\n")[:-1]:
        line = line.strip("\0 ")  # of a line that was never written there are zeros
        kind, rest = line[:1], line[1:]
        if kind in ("+", "*"):
            watched.append(Watched(rest))
        elif kind == "=":
            pid, ticks, mark = rest.split(" ", 2)
            watched.append(Watched(mark, int(pid), int(ticks)))
    return watched


def sweep(watched: list[Watched]) -> None:
    """End them with all that they started: asked first, then killed."""
    from cru.core.base.process.descent import UNKNOWN, Root, members

    roots = [Root(child.pid or UNKNOWN, child.mark, latest=child.ticks) for child in watched]
    begin, asked = time.monotonic(), set[int]()
    clean = 0
    while clean < 2 and time.monotonic() < begin + MOST:  # a process may fork between the look and the signal
        alive = members(*roots)
        if alive is None:
            alive = [-child.pid for child in watched if child.pid and _signal(-child.pid, 0)]
        alive = [pid for pid in alive if pid != os.getpid()]
        clean = 0 if alive else clean + 1
        is_over = time.monotonic() >= begin + GRACE
        for pid in alive:
            if is_over:
                _signal(pid, signal.SIGKILL)
            elif pid not in asked:
                asked.add(pid)
                _signal(pid, signal.SIGTERM)
                _signal(pid, signal.SIGCONT)  # one that is stopped hears of nothing
        time.sleep(PAUSE)


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def main() -> None:
    table = int(sys.argv[1])
    with open(table, "rb", closefd=False) as file:
        file.seek(0)
        text = file.read().decode("utf-8", "surrogateescape")
    sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    sweep(read_table(text))


if __name__ == "__main__":
    main()
