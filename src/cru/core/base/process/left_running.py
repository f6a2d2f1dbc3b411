"""What commands have left running: when they ended, such as `server &`, it ends with the session; when nobody ended it after a kill,
with the next one."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.core.base.process.guardian import Guardian
from cru.core.base.process.marks import has_numbers, number_of, numbers_of, signal_all
from cru.core.base.process.run import Ending

if TYPE_CHECKING:
    from cru.core.base.process.descent import Root

MOMENT = 0.02
"""Seconds."""


class EndedProcesses(Struct, frozen=True):
    """names: of each that was found, with its process id
    is_over: nothing of it runs any more
    """

    names: list[str]
    is_over: bool


async def end_left_running(guardian: Guardian, grace: float = Ending().grace) -> list[str]:
    """End it, asked first, killed after the grace; what it was: `name (process id)` of each process. What does not end in time is left
    to the guardian, which tries again when this process has ended."""
    if not guardian.session or not _is_there(guardian.session):
        guardian.unbind()
        return []
    ended = await _end(guardian.session, grace)
    if ended.is_over:
        guardian.unbind()
    return ended.names


async def end_marked(mark: str, grace: float = Ending().grace) -> EndedProcesses:
    """The same for all that carries a mark. Where there is no /proc nothing is found."""
    return await _end(mark, grace) if _is_there(mark) else EndedProcesses([], True)


async def _those_that_stay(root: Root) -> list[int]:
    """What runs, but for what is about to be gone: the first process in a sandbox ends a moment after what watches over it."""
    from cru.core.base.process.descent import members  # see _end

    if not members(root):
        return []
    await asyncio.sleep(MOMENT)
    return members(root) or []


async def _end(mark: str, grace: float) -> EndedProcesses:
    from cru.core.base.process.descent import UNKNOWN, Root, members  # most sessions leave nothing running

    root = Root(UNKNOWN, mark)
    alive = await _those_that_stay(root)
    names = [f"{_name(pid)} ({pid})" for pid in alive]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    asked = set[int]()
    while alive and loop.time() < deadline:
        signal_all([pid for pid in alive if pid not in asked], signal.SIGTERM, signal.SIGCONT)
        asked.update(alive)
        await asyncio.sleep(0.01)
        alive = members(root) or []
    for _ in range(10):  # a process may fork between the look and the signal
        if not alive:
            break
        signal_all(alive, signal.SIGKILL)
        alive = members(root) or []
    return EndedProcesses(names, not alive)


def _is_there(mark: str) -> bool:
    """A quick look: a system call a process."""
    if not has_numbers():
        return True
    numbers = numbers_of(mark)
    return any(number_of(int(name)) in numbers for name in os.listdir("/proc") if name.isdigit())


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "a process"
