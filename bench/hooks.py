#!/usr/bin/env python3
"""What a command hook costs over its own process: a whole dispatch on a session's bus beside a bare spawn of the same command.

usage: python bench/hooks.py [--rounds N] [--leaks N]   (in an environment where cru is installed)

Interleaved; times in milliseconds, and their ratios to the bare spawn of the same round.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from cru.core.conversations.line_file import LineFile
from cru.core.events.bus import Bus
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Origin
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.dialects.crush.dialect import DIALECT as CRUSH
from cru.core.hooks.model.entry import HookSource
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks
from cru.core.hooks.session import SessionHooks
from cru.core.hooks.launch.process import command_line

TOOL = ToolBeforeCall("bash", {"command": "x" * 900, "timeout": 30}, "call_1")
HOOK = ": {n}"
WAITS = "sleep 0.05; : {n}"
"""A hook that does not compete for the processor: eight of the others on two cores cost the bare spawn about five times one."""
BUDGETS = {"one hook": ("bare spawn", 1.3), "eight hooks": ("eight bare", 1.5), "eight that wait": ("one that waits", 3.0)}


class World:
    """A bus with so many hooks, and the bare spawn of one of them."""

    def __init__(self, folder: Path, count: int, hook: str = HOOK) -> None:
        self.cwd = folder
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
        text = msgspec.json.encode({"hooks": {"PreToolUse": [{"command": hook.format(n=n)} for n in range(count)]}}).decode()
        about = SessionFacts("s", "main", folder, folder, folder, folder, folder, self.env, lambda: "ask", lambda: folder / "t.jsonl")
        entries = CRUSH.parse(HookSource("crush", "user", folder / "crush.json", text), about).entries
        loaded = LoadedHooks([EntryStatus(entry, Activation.ACTIVE) for entry in entries])
        self.hooks = SessionHooks(loaded, {"crush": CRUSH}, about, LineFile(folder / "hooks.jsonl"))
        self.bus = Bus(Origin(session_id="s", run_id="r"))
        self.hooks.register(self.bus)
        self.argv = command_line(entries[0], self.env, folder, CRUSH.launch, folder) if entries else ()
        self.stdin = b"x" * 1200

    async def dispatch(self) -> None:
        await self.bus.dispatch(TOOL)

    async def bare(self, count: int = 1) -> None:
        """As a plain program would: start them, hand over the payload, read both outputs, wait."""
        pipe = subprocess.PIPE
        children = [
            subprocess.Popen(self.argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.cwd, env=self.env, start_new_session=True)
            for _ in range(count)
        ]
        for child in children:
            child.communicate(self.stdin)


async def timed(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def costs(folder: Path, rounds: int) -> bool:
    none, one, eight = (World(folder, count) for count in (0, 1, 8))
    waits, eight_wait = World(folder, 1, WAITS), World(folder, 8, WAITS)
    works = {
        "no hook": none.dispatch, "bare spawn": one.bare, "one hook": one.dispatch, "eight bare": lambda: one.bare(8),
        "eight hooks": eight.dispatch, "one that waits": waits.dispatch, "eight that wait": eight_wait.dispatch,
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(await timed(work))
    for name, taken in times.items():
        print(f"{name:16} best {min(taken):7.2f}   median {statistics.median(taken):7.2f} ms")
    return all([within(times, name) for name in BUDGETS])


def within(times: dict[str, list[float]], name: str) -> bool:
    """The better of two ratios counts: of the best times, and the median of the rounds' own."""
    other, budget = BUDGETS[name]
    best = min(times[name]) / min(times[other])
    median = statistics.median(one / base for one, base in zip(times[name], times[other], strict=True))
    fine = min(best, median) <= budget
    print(f"{name} / {other}: best {best:.2f}, median {median:.2f}, budget {budget}: {'yes' if fine else 'NO'}")
    return fine


def held() -> tuple[int, int, int]:
    """Open files, children, threads."""
    children = Path("/proc/thread-self/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), len(children), threading.active_count()


async def leaks(folder: Path, runs: int) -> bool:
    world = World(folder, 8, "cat >/dev/null; echo {n}")
    await world.dispatch()
    before = held()
    for _ in range(runs // 8):
        await world.dispatch()
    gc.collect()
    after, tasks = held(), len(asyncio.all_tasks())
    print(f"{runs} runs: files, children, threads {before} -> {after}, tasks {tasks}")
    return before == after and tasks == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--leaks", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cru-bench-") as folder:
        fine = asyncio.run(costs(Path(folder), options.rounds))
        clean = asyncio.run(leaks(Path(folder), options.leaks))
    raise SystemExit(0 if fine and clean else 1)


if __name__ == "__main__":
    main()
