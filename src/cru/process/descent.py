"""Which processes a child started, wherever they moved: those of its session or group, those below it, and those that carry its mark,
if it has one.

The mark is a variable of the environment that everything below inherits, also what has become a child of init (`setsid -f`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import NamedTuple

MARK = "CRU_CHILD"


class _ProcessStat(NamedTuple):
    parent: int
    group: int
    session: int


def new_mark(env: Mapping[str, str]) -> str:
    """A mark of its own for a child with this environment, behind that of the child that we are."""
    return f"{env.get(MARK, '')}/{os.getpid()}.{time.monotonic_ns()}"


def members(leader: int, mark: str, own_session: bool) -> list[int] | None:
    """The live processes that came of the leader of a session or, if it has none of its own, of a group. None where there is no /proc
    to look them up."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    live = {int(name): stat for name in names if name.isdigit() and (stat := _stat(name)) is not None}
    variable = f"\0{MARK}={mark}".encode("utf-8", "surrogateescape")
    return [
        pid
        for pid, stat in live.items()
        if (stat.session if own_session else stat.group) == leader
        or _descends(pid, leader, live)
        or (mark and _carries(pid, variable))
    ]


def _stat(name: str) -> _ProcessStat | None:
    """None for one that has ended."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            state, *numbers = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else _ProcessStat(*map(int, numbers))


def _descends(pid: int, leader: int, live: Mapping[int, _ProcessStat]) -> bool:
    steps = 0  # ids may be reused while they are looked up
    while pid != leader and pid in live and steps < len(live):
        pid, steps = live[pid].parent, steps + 1
    return pid == leader


def _carries(pid: int, variable: bytes) -> bool:
    """Whether it has this mark, or one of a child below."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = b"\0" + file.read()
    except OSError:  # it is gone, or somebody else's
        return False
    at = environment.find(variable)
    return at >= 0 and environment[at + len(variable) :][:1] in (b"", b"\0", b"/")
