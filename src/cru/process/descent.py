"""Which processes a child started, wherever they moved: those of its session or group, those below it, and those that carry its mark,
if it has one.

The mark is a variable of the environment that everything below inherits, also what has become a child of init (`setsid -f`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MARK = "CRU_CHILD"
UNKNOWN = -1
"""In the place of the id of a leader that nobody knows."""


class Root(NamedTuple):
    """What processes came of.

    leader: of a session or, if the child has none of its own, of a group; UNKNOWN: only the mark counts
    mark: "": it has none
    own_session: whether the leader is that of a session
    """

    leader: int
    mark: str = ""
    own_session: bool = True


class _ProcessStat(NamedTuple):
    parent: int
    group: int
    session: int


def new_mark(env: Mapping[str, str]) -> str:
    """A mark of its own for a child with this environment, behind that of the child that we are."""
    return f"{env.get(MARK, '')}/{os.getpid()}.{time.monotonic_ns()}"


def members(*roots: Root) -> list[int] | None:
    """The live processes that came of any of these. None where there is no /proc to look them up."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    live = {int(name): stat for name in names if name.isdigit() and (stat := _stat(name)) is not None}
    sessions = {root.leader for root in roots if root.own_session}
    groups = {root.leader for root in roots if not root.own_session}
    leaders = sessions | groups
    marks = [f"\0{MARK}={root.mark}".encode("utf-8", "surrogateescape") for root in roots if root.mark]
    return [
        pid
        for pid, stat in live.items()
        if stat.session in sessions or stat.group in groups or _descends(pid, leaders, live) or _carries(pid, marks)
    ]


def _stat(name: str) -> _ProcessStat | None:
    """None for one that has ended."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            state, *numbers = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else _ProcessStat(*map(int, numbers))


def _descends(pid: int, leaders: set[int], live: Mapping[int, _ProcessStat]) -> bool:
    steps = 0  # ids may be reused while they are looked up
    while pid not in leaders and pid in live and steps < len(live):
        pid, steps = live[pid].parent, steps + 1
    return pid in leaders


def _carries(pid: int, variables: Sequence[bytes]) -> bool:
    """Whether it has one of these marks, or one of a child below."""
    if not variables:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = b"\0" + file.read()
    except OSError:  # it is gone, or somebody else's
        return False
    for variable in variables:
        at = environment.find(variable)
        if at >= 0 and environment[at + len(variable) :][:1] in (b"", b"\0", b"/"):
            return True
    return False
