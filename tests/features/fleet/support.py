"""A queue in a folder of a test, and workers of it."""

from __future__ import annotations

from pathlib import Path

from tests.kit.closing import closed_later

from cru.features.fleet.database import Database, open_database
from cru.features.fleet.queue import WorkQueue
from cru.features.fleet.records import BatchItem
from cru.features.fleet.workers import WorkerRegistry

BEAT = 5.0
URL = ""
"""Of the database; "" is a file in the folder of the test."""


def queue_at(folder: Path, home: str = "home", database: Database | None = None) -> WorkQueue:
    queue = WorkQueue(database or open_database(URL, folder), home)
    queue.open()
    return closed_later(queue)


def registered(queue: WorkQueue, folder: Path, beat: float = BEAT) -> WorkerRegistry:
    registry = WorkerRegistry(queue, folder / "workers", beat)
    registry.join()
    return closed_later(registry)


def items(*names: str, context: str = "") -> list[tuple[int, BatchItem]]:
    return [
        (line, BatchItem(f"prompt of {name}", id=name, context=context or f"c-{name}", cwd="/"))
        for line, name in enumerate(names, 1)
    ]
