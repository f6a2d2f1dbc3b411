"""Which processes a child started, wherever they moved: those of its session or group, those that carry its mark, if it has one
(cru.core.base.process.marks), and all below these."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator

from cru.core.base.process.marks import (
    ask_ps,
    carries_variable,
    has_numbers,
    is_of_one_process,
    number_of,
    numbers_of,
    process_identity,
    signal_all,
)

UNKNOWN = -1
"""In the place of the id of a leader that nobody knows."""
TICK = 2
"""Ticks of the clock by which two ways to read it may differ."""


WORTH = 4
"""A look may be shared for so many times the time that it took."""


class Root:  # no library is used here: sweep.py runs without any
    """What processes came of.

    leader: of a session or, if the child has none of its own, of a group; UNKNOWN: only the mark counts
    mark: "": it has none
    own_session: whether the leader is that of a session
    latest: ticks since the machine began, by which the leader had started: a process of that number which began later is another one;
        0: the number cannot have been given anew
    """

    def __init__(self, leader: int, mark: str = "", own_session: bool = True, latest: int = 0) -> None:
        self.leader, self.mark, self.own_session, self.latest = leader, mark, own_session, latest


class _ProcessStat:
    __slots__ = ("group", "number", "parent", "session", "started")

    def __init__(self, parent: int, group: int, session: int, started: int, number: int) -> None:
        self.parent, self.group, self.session, self.started, self.number = parent, group, session, started, number


class _ProcessScan:
    """The live processes at one moment, by what they have in common. Raises OSError where there is no /proc."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.live: dict[int, _ProcessStat] = {}
        self.sessions: dict[int, list[int]] = {}
        self.groups: dict[int, list[int]] = {}
        self.children: dict[int, list[int]] = {}
        self.numbers: dict[int, list[int]] = {}
        for name in os.listdir("/proc"):
            stat = _stat(name) if name.isdigit() else None
            if stat is None:
                continue
            pid = int(name)
            self.live[pid] = stat
            self.sessions.setdefault(stat.session, []).append(pid)
            self.groups.setdefault(stat.group, []).append(pid)
            self.children.setdefault(stat.parent, []).append(pid)
            if stat.number:
                self.numbers.setdefault(stat.number, []).append(pid)
        end = time.monotonic()
        self.fresh_until = end + WORTH * (end - self.began)

    def members(self, root: Root) -> Iterator[int]:
        if self._is_same(root):
            yield from (self.sessions if root.own_session else self.groups).get(root.leader, ())
            yield from self.children.get(root.leader, ())
        if root.mark:
            yield from self._carriers(root.mark)

    def below(self, pids: Iterable[int]) -> list[int]:
        """These, and all that came of them."""
        all_of_it = dict.fromkeys(pids)
        pending = list(all_of_it)
        while pending:
            new = [child for child in self.children.get(pending.pop(), ()) if child not in all_of_it]
            all_of_it.update(dict.fromkeys(new))
            pending += new
        return list(all_of_it)

    def _is_same(self, root: Root) -> bool:
        """Whether the leader is the one that is meant, or gone: its number is not given anew while anything of its session runs."""
        leader = self.live.get(root.leader)
        return leader is None or not root.latest or leader.started <= root.latest + TICK

    def _carriers(self, mark: str) -> Iterator[int]:
        """Where there are numbers, only what has one of another process may have it in the environment alone: a child of a run of cru
        that is below ours."""
        numbers = numbers_of(mark)
        if len(numbers) == 1:
            yield from self.numbers.get(numbers[0], ())
        else:
            yield from (pid for number, pids in self.numbers.items() if number in numbers for pid in pids)
        for pid, stat in self.live.items():
            is_possible = bool(stat.number) and not is_of_one_process(stat.number, numbers) if has_numbers() else True
            if is_possible and carries_variable(pid, mark):
                yield pid


_last: _ProcessScan | None = None


def members(*roots: Root, since: float | None = None) -> list[int] | None:
    """The live processes that came of any of these. None where there is no /proc to look them up. `since`: a look that somebody else has
    begun after that moment (time.monotonic) is good enough, if it is fresh; so many may wait for ends at the same time."""
    global _last
    look = _last
    if look is None or since is None or look.began < since or time.monotonic() > look.fresh_until:
        try:
            look = _last = _ProcessScan()
        except OSError:
            return None
    return look.below([pid for root in roots for pid in look.members(root)])


def _stat(name: str) -> _ProcessStat | None:
    """None for one that has ended."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    if state in (b"Z", b"X"):
        return None
    return _ProcessStat(int(fields[0]), int(fields[1]), int(fields[2]), int(fields[18]), number_of(int(name)))


def end_process(pid: int, identity: str, grace: float = 2.0) -> bool:
    """End the leader of a session with all that it started: asked first, killed after the grace; False if it is gone already. It blocks."""
    if not identity or process_identity(pid) != identity:
        return False

    roots = Root(pid)
    signal_all(members(roots) or [-pid], signal.SIGTERM, signal.SIGCONT)
    deadline = time.monotonic() + grace
    while (alive := _alive(pid, roots)) and time.monotonic() < deadline:
        time.sleep(0.02)
    while alive:
        signal_all(alive, signal.SIGKILL)
        time.sleep(0.02)
        alive = _alive(pid, roots) if time.monotonic() < deadline + grace else []
    return True


def _alive(pid: int, root: Root) -> list[int]:
    running = members(root)
    if running is not None:
        return running
    return [-pid] if ask_ps(pid) else []
