"""Which processes a child started, wherever they moved: those of its session or group, those below it, and those that carry its mark,
if it has one.

The mark is a variable of the environment that everything below inherits, also what has become a child of init (`setsid -f`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

MARK = "CRU_CHILD"
_numbers = count(1)


class _Seen(NamedTuple):
    parent: int
    group: int
    session: int


def mark(env: Mapping[str, str]) -> str:
    """A mark of its own for a child with this environment, behind that of the child that we are."""
    return f"{env.get(MARK, '')}/{os.getpid()}.{next(_numbers)}"


def members(leader: int, mark: str, alone: bool) -> list[int] | None:
    """The live processes that came of the leader, which has a session of its own if it is `alone`, else a group. None where there is
    no /proc to look them up."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    live = {int(name): seen for name in names if name.isdigit() and (seen := _look(name)) is not None}
    wanted = f"\0{MARK}={mark}".encode("utf-8", "surrogateescape")
    return [
        pid
        for pid, one in live.items()
        if (one.session if alone else one.group) == leader
        or _descends(pid, leader, live)
        or (mark and _carries(pid, wanted))
    ]


def _look(name: str) -> _Seen | None:
    """None for one that has ended."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            state, *numbers = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else _Seen(*map(int, numbers))


def _descends(pid: int, leader: int, live: Mapping[int, _Seen]) -> bool:
    seen = 0  # ids may be reused while they are looked up
    while pid != leader and pid in live and seen < len(live):
        pid, seen = live[pid].parent, seen + 1
    return pid == leader


def _carries(pid: int, wanted: bytes) -> bool:
    """Whether it has this mark, or one of a child below."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            held = b"\0" + file.read()
    except OSError:  # it is gone, or somebody else's
        return False
    at = held.find(wanted)
    return at >= 0 and held[at + len(wanted) :][:1] in (b"", b"\0", b"/")
