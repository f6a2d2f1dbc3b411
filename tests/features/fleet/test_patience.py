"""A worker whose database is gone: on a full disk it gives up, and ends what runs."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.features.fleet.support import items, queue_at
from tests.kit.closing import closed_later

from cru.features.fleet import QueueUnavailable, worker
from cru.features.fleet.database import Run, SqliteDatabase
from cru.features.fleet.run_task import RunSettings
from cru.features.fleet.worker import FleetWorker, WorkerLimits
from cru.features.fleet.workers import WorkerRegistry


class FullDisk(SqliteDatabase):
    """A database whose disk becomes full after some transactions, and has room again after some more.

    full_from, room_from: numbers of transactions
    """

    full_from, room_from, count = 1_000_000, 1_000_000, 0

    @contextmanager
    def transaction(self) -> Iterator[Run]:
        self.count += 1
        if self.full_from <= self.count < self.room_from:
            raise QueueUnavailable(f"the queue {self.place} cannot be used: {sqlite3.OperationalError('full')}", "")
        with super().transaction() as run:
            yield run


def work(tmp_path: Path, limits: WorkerLimits, tasks: int, **full: int) -> list[Any]:
    """Work on a disk that becomes full; what was reported. Raises as the worker does."""
    database = FullDisk(tmp_path / "queue.sqlite")
    queue, events = queue_at(tmp_path, database=database), MagicMock()
    queue.add("b", items(*map(str, range(tasks))), 5)
    registry = closed_later(WorkerRegistry(queue, tmp_path / "workers", limits.beat))
    for name, number in full.items():
        setattr(database, name, database.count + number)
    hang = RunSettings(("sh", "-c", "exec sleep 300"), tmp_path, {"PATH": "/usr/bin:/bin"})

    async def run() -> None:
        fleet = FleetWorker(queue, registry, hang, limits, events)
        try:
            await fleet.run()
        finally:
            await fleet.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    return [call.args[0] for call in events.unavailable.call_args_list]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(worker, "LONGEST_WAIT", 0.01)
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.01)


@pytest.mark.parametrize(("tasks", "full_from"), [(0, 3), (0, 4), (1, 5), (2, 6), (2, 7)])
def test_on_a_full_disk_the_worker_gives_up_and_ends_what_runs(tmp_path: Path, tasks: int, full_from: int) -> None:
    limits = WorkerLimits(2, "b", once=True, beat=0.02, patience=0.1)
    with pytest.raises(QueueUnavailable, match=r"full; cru tried again for 0\.1 s") as caught:
        work(tmp_path, limits, tasks, full_from=full_from)
    assert "make room on the disk, then run the same command again" in caught.value.hint


def test_a_disk_that_has_room_again_in_time_is_worked_on(tmp_path: Path) -> None:
    limits = WorkerLimits(2, "b", once=True, patience=300)
    first, last = work(tmp_path, limits, 0, full_from=3, room_from=6)
    assert "full" in first.message and last is None


def test_reads_that_work_do_not_report_a_full_disk_as_usable_again(tmp_path: Path) -> None:
    """On a full disk only writes fail."""
    queue, events = queue_at(tmp_path), MagicMock()
    registry = closed_later(WorkerRegistry(queue, tmp_path / "workers", 5.0))
    fleet = FleetWorker(queue, registry, MagicMock(), WorkerLimits(once=True), events)
    failures = 5

    def write() -> str:
        nonlocal failures
        failures -= 1
        if failures > 0:
            raise QueueUnavailable("full")
        return "written"

    async def run() -> str:
        writing = asyncio.create_task(fleet.call(write))
        while not writing.done():
            assert await fleet.call(lambda: "read") == "read"
        await fleet.close()
        return await writing

    assert asyncio.run(asyncio.wait_for(run(), 60)) == "written"
    assert [call.args[0] is None for call in events.unavailable.call_args_list] == [False, True]


def test_a_worker_that_ends_while_a_failed_beat_sleeps_reports_a_usable_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FIRST_WAIT", 300)
    queue, events = queue_at(tmp_path), MagicMock()
    registry = closed_later(WorkerRegistry(queue, tmp_path / "workers", 5.0))
    monkeypatch.setattr(registry, "beat", MagicMock(side_effect=QueueUnavailable("gone")))

    async def run() -> None:
        fleet = FleetWorker(queue, registry, MagicMock(), WorkerLimits(once=True, beat=0.0), events)
        await fleet.run()
        await fleet.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert [call.args[0] is None for call in events.unavailable.call_args_list] == [False, True]
