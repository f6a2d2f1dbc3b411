"""A program of its own (`python -I -S sweep.py TABLE`): ends what a process left running that has died (guardian.py)."""

import os
import signal
import sys
import time

GRACE = 2.0
"""Seconds from the request to end until what is left is killed."""
MOST = 10.0
"""Seconds for all of it: what hangs inside the kernel ends when it can."""
PAUSE = 0.02


def read_table(text: str) -> dict[str, int]:
    """Marks of children that had not ended, and their process ids (0: nobody knew it yet). A line that is not whole does not count."""
    children: dict[str, int] = {}
    for line in text.split("\n")[:-1]:
        kind, rest = line[:1], line[1:]
        if kind == "+":
            children[rest] = 0
        elif kind == "=":
            pid, _, mark = rest.partition(" ")
            children[mark] = int(pid)
        elif kind == "-":
            children.pop(rest, None)
    return children


def sweep(children: dict[str, int]) -> None:
    """End them with all that they started: asked first, then killed."""
    from cru.process.descent import UNKNOWN, Root, members

    roots = [Root(pid or UNKNOWN, mark) for mark, pid in children.items()]
    begin, asked = time.monotonic(), set[int]()
    clean = 0
    while clean < 2 and time.monotonic() < begin + MOST:  # a process may fork between the look and the signal
        alive = members(*roots)
        if alive is None:
            alive = [-pid for pid in children.values() if pid and _signal(-pid, 0)]
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
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sweep(read_table(text))


if __name__ == "__main__":
    main()
