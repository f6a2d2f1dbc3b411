"""One batch in the queue of a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cru.features.fleet.queue import WorkQueue
from cru.features.fleet.records import BatchItem, TaskRow, TaskState


class QueuedBatch:
    """One batch in the queue."""

    def __init__(self, queue: WorkQueue, name: str) -> None:
        self.name, self.place, self.database = name, queue.place, queue.database
        self._queue = queue

    def rows(self) -> list[TaskRow]:
        return self._queue.rows(self.name)

    def items(self) -> list[tuple[int, BatchItem]]:
        return self._queue.items(self.name)

    def add(self, items: Sequence[tuple[int, BatchItem]], max_deaths: int, is_shared: bool) -> int:
        return self._queue.add(self.name, items, max_deaths, is_shared)

    def retry(self, ids: Iterable[str], max_deaths: int) -> int:
        return self._queue.retry(self.name, ids, max_deaths)

    def is_shared(self) -> bool:
        return self._queue.is_shared(self.name)

    def finished_since(self, known: set[str]) -> list[TaskRow]:
        return self._queue.finished_since(self.name, known)

    def running(self) -> int:
        return sum(row.state is TaskState.RUNNING for row in self.rows())

    def forget(self) -> int:
        return self._queue.forget(self.name)

    def close(self) -> None:
        self._queue.close()
