"""A queue in a Postgres server of the tests, and workers of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.kit.closing import closed_later

from cru.features.fleet.database import Database
from cru.features.fleet.queue import WorkerInfo, WorkQueue
from cru.features.fleet.queued_batch import QueuedBatch
from cru.features.fleet.records import BatchItem, QueuedTask

BEAT = 5.0


def queue_at(url: str, home: str = "home") -> WorkQueue:
    queue = WorkQueue(Database(url), home)
    queue.open()
    return closed_later(queue)


def batch_of(queue: WorkQueue, name: str = "b") -> QueuedBatch:
    return QueuedBatch(queue, name)


def joined(queue: WorkQueue, name: str = "w", beat: float = BEAT) -> int:
    """A worker that Procrastinate knows; its id."""
    with queue.database.transaction() as run:
        [(worker,)] = run("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
    queue.join(worker, WorkerInfo(name, f"host of {name}", 1, beat))
    return int(worker)


def fetched(queue: WorkQueue, worker: int) -> QueuedTask | None:
    """Fetch the next task, as Procrastinate does. Raises UnreadableTask."""
    with queue.database.transaction() as run:
        [(job,)] = run(
            "SELECT id FROM procrastinate_fetch_job_v2(%(queues)s::varchar[], %(worker)s)",
            queues=queue.queues,
            worker=worker,
        )
    return queue.task(job) if job is not None else None


def late(queue: WorkQueue, worker: int) -> None:
    """As if its last beat were an hour ago."""
    with queue.database.transaction() as run:
        run("UPDATE procrastinate_workers SET last_heartbeat = NOW() - INTERVAL '1 hour' WHERE id = %(id)s", id=worker)


def items(*names: str, context: str = "") -> list[tuple[int, BatchItem]]:
    return [
        (line, BatchItem(f"prompt of {name}", id=name, context=context or f"c-{name}", cwd="/"))
        for line, name in enumerate(names, 1)
    ]


def write_item(queue: WorkQueue, name: str, item: object, version: int = 1) -> None:
    """Put something else into the row of an item, as a newer cru or a person does."""
    text = item if isinstance(item, str) else msgspec.json.encode(item).decode()
    with queue.database.transaction() as run:
        run(
            "UPDATE cru_items SET item = %(item)s, version = %(version)s WHERE id = %(id)s",
            item=text,
            version=version,
            id=name,
        )


def home_path(tmp_path: Path) -> Path:
    return tmp_path / "home"
