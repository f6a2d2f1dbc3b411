"""Which processes a child started, wherever they moved: those of its session or group, those below it, and those that carry its mark,
if it has one (cru.process.marks)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from cru.process.marks import carries_variable, number_of, numbers_of

UNKNOWN = -1
"""In the place of the id of a leader that nobody knows."""
TICK = 2
"""Ticks of the clock by which two ways to read it may differ."""


class Root(NamedTuple):
    """What processes came of.

    leader: of a session or, if the child has none of its own, of a group; UNKNOWN: only the mark counts
    mark: "": it has none
    own_session: whether the leader is that of a session
    latest: ticks since the machine began, by which the leader had started: a process of that number which began later is another one;
        0: the number cannot have been given anew
    """

    leader: int
    mark: str = ""
    own_session: bool = True
    latest: int = 0


class _ProcessStat(NamedTuple):
    parent: int
    group: int
    session: int
    started: int


def members(*roots: Root) -> list[int] | None:
    """The live processes that came of any of these. None where there is no /proc to look them up."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    live = {int(name): stat for name in names if name.isdigit() and (stat := _stat(name)) is not None}
    known = [root for root in roots if _is_same(root, live)]
    sessions = {root.leader for root in known if root.own_session}
    groups = {root.leader for root in known if not root.own_session}
    leaders = sessions | groups
    marks = [root.mark for root in roots if root.mark]
    numbers = [numbers for mark in marks if (numbers := numbers_of(mark))]
    return [
        pid
        for pid, stat in live.items()
        if stat.session in sessions
        or stat.group in groups
        or _descends(pid, leaders, live)
        or _carries(pid, marks, numbers)
    ]


def _carries(pid: int, marks: list[str], numbers: list[range]) -> bool:
    if numbers:
        number = number_of(pid)
        if any(number in some for some in numbers):
            return True
    return carries_variable(pid, marks)


def _is_same(root: Root, live: Mapping[int, _ProcessStat]) -> bool:
    """Whether the leader is the one that is meant, or gone: its number is not given anew while anything of its session runs."""
    leader = live.get(root.leader)
    return leader is None or not root.latest or leader.started <= root.latest + TICK


def _stat(name: str) -> _ProcessStat | None:
    """None for one that has ended."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    if state in (b"Z", b"X"):
        return None
    return _ProcessStat(int(fields[0]), int(fields[1]), int(fields[2]), int(fields[18]))


def _descends(pid: int, leaders: set[int], live: Mapping[int, _ProcessStat]) -> bool:
    steps = 0  # ids may be reused while they are looked up
    while pid not in leaders and pid in live and steps < len(live):
        pid, steps = live[pid].parent, steps + 1
    return pid in leaders
