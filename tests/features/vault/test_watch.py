"""What changes in the folder is told, once it has settled."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.features.vault.support import write_notes

from cru.features.vault.watch import FileEvent, watch_vault


def test_changes_are_collected_and_told(tmp_path: Path) -> None:
    write_notes(tmp_path, {"a.md": "1", ".hidden/x.md": "1"})

    async def run() -> list[FileEvent]:
        stop = asyncio.Event()
        events: list[FileEvent] = []

        async def watch() -> None:
            async for part in watch_vault(tmp_path, stop, lambda path: path != "left-out.md"):
                events.extend(part)
                if {"sub/new.md", "a.md"} <= {event.path for event in events}:
                    stop.set()

        task = asyncio.create_task(watch())
        while not task.done():
            # the watcher says nothing when it is ready, so what it must see is done until it saw it
            write_notes(tmp_path, {"a.md": "2", "sub/new.md": "1", ".hidden/x.md": "2", "left-out.md": "1"})
            await asyncio.wait({task}, timeout=0.2)
        await task
        return events

    events = asyncio.run(asyncio.wait_for(run(), 60))
    assert {event.path for event in events} == {"a.md", "sub/new.md"}
    assert {event.kind for event in events} <= {"created", "modified"}
