"""Looks behind commands that end at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cru.revisions.commands import CommandWatcher
from cru.revisions.records import ChangedBy, ChangeOrigin, CommandLook
from cru.revisions.store import RevisionStore
from cru.revisions.work_tree import GitPlaces, PrivateIndex


class SlowWatcher(CommandWatcher):
    """Each look takes until it is let go."""

    gates: list[asyncio.Event]
    seen: list[str]

    async def _look_behind(self, earlier: asyncio.Task[None] | None, look: CommandLook) -> None:
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        self.seen.append(look.command)


def test_who_waits_for_a_look_waits_for_one_that_begins_meanwhile_too(tmp_path: Path) -> None:
    places = GitPlaces(tmp_path, tmp_path, tmp_path)
    index = PrivateIndex(places, tmp_path, tmp_path / "index", "/usr/bin", 5.0)
    watcher = SlowWatcher(RevisionStore(tmp_path / "store"), index, print)
    watcher.gates, watcher.seen = [], []
    origin = ChangeOrigin(ChangedBy.COMMAND)

    async def run() -> None:
        watcher.after(origin, "first")
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(watcher.settle())
        await asyncio.sleep(0)
        watcher.after(origin, "second")
        await asyncio.sleep(0)
        watcher.gates[0].set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done() and watcher.seen == ["first"]
        watcher.gates[1].set()
        await waiting

    asyncio.run(run())
    assert watcher.seen == ["first", "second"] and not watcher.is_looking
