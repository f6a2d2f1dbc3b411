"""The jobs of a worker, on Procrastinate and Postgres: no way to end a job loses its item."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import procrastinate
import pytest
from procrastinate.jobs import Status
from tests.features.fleet.support import batch_of, items, queue_at

from cru.features.fleet import QueueUnavailable, worker
from cru.features.fleet.jobs import FleetJobs
from cru.features.fleet.queue import WorkerInfo, WorkQueue
from cru.features.fleet.records import TaskState, WorkResult, WorkStatus
from cru.features.fleet.run_task import RunEnd, RunSettings, TaskRun
from cru.features.fleet.worker import FleetWorker, WorkerLimits

INFO = WorkerInfo("w", "host", 2, 5.0)
DONE = WorkResult(WorkStatus.DONE, "fine")


async def call(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments)


async def once(work: Callable[[], Awaitable[Any]]) -> Any:
    return await work()


def with_jobs(url: str, use: Callable[[WorkQueue, FleetJobs], Awaitable[None]]) -> None:
    """A worker's jobs, of a batch with the item x."""
    queue = queue_at(url)
    batch_of(queue).add(items("x"), 5, False)

    async def run() -> None:
        connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=1)
        async with procrastinate.App(connector=connector).open_async():
            jobs = FleetJobs(connector, queue, INFO, call, once, lambda dead: None, lambda: False)
            await jobs.register_worker()
            await use(queue, jobs)

    asyncio.run(run())


def test_a_job_that_the_worker_has_fetched_again_is_not_ended_by_its_first_run(url: str) -> None:
    """Its run died, it was queued and fetched again, and only then Procrastinate ends what was fetched first."""

    async def use(queue: WorkQueue, jobs: FleetJobs) -> None:
        first = await jobs.fetch_job(queue.queues, jobs.worker)
        assert first is not None and first.id is not None
        task = queue.task(first.id)
        assert task is not None
        queue.count_death(jobs.worker, INFO, task, "it was ended by SIGKILL")
        assert await jobs.fetch_job(queue.queues, jobs.worker) is not None
        await jobs.finish_job(first, Status.SUCCEEDED, False)
        assert queue.finish(jobs.worker, task, DONE) is not None

    with_jobs(url, use)


@pytest.mark.parametrize(
    ("status", "is_cancelled", "state"),
    [
        (Status.ABORTED, True, TaskState.FINISHED),  # it was cancelled before its run began
        (Status.FAILED, False, TaskState.QUEUED),  # its result could not be written
        (Status.ABORTED, False, TaskState.QUEUED),
    ],
)
def test_a_job_that_ends_without_a_result_leaves_its_item_in_the_queue(
    url: str, status: Status, is_cancelled: bool, state: TaskState
) -> None:
    async def use(queue: WorkQueue, jobs: FleetJobs) -> None:
        job = await jobs.fetch_job(queue.queues, jobs.worker)
        assert job is not None
        if is_cancelled:
            assert batch_of(queue).cancel(["x"]) == 1
        await jobs.finish_job(job, status, False)
        [row] = batch_of(queue).rows()
        assert row.state is state
        assert (row.result and row.result.status) == (WorkStatus.CANCELLED if is_cancelled else None)

    with_jobs(url, use)


def test_a_job_of_a_forgotten_batch_and_one_of_another_program_are_ended(url: str) -> None:
    async def use(queue: WorkQueue, jobs: FleetJobs) -> None:
        with queue.database.transaction() as run:
            run("DELETE FROM cru_items")
        job = await jobs.fetch_job(queue.queues, jobs.worker)
        assert job is not None
        await jobs.finish_job(job, Status.SUCCEEDED, False)
        with queue.database.transaction() as run:
            assert run("SELECT COUNT(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')") == [(0,)]

    with_jobs(url, use)


class FinishedRun(TaskRun):
    async def run(self, more: Mapping[str, str] | None = None) -> RunEnd:
        return RunEnd(DONE)


@pytest.mark.slow
def test_a_worker_that_may_not_use_a_table_says_so_and_goes_on_once_it_may(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes jobs that it cannot carry out: without a word of it they would stay with it for ever."""
    monkeypatch.setattr(worker, "TaskRun", FinishedRun)
    queue, admin = queue_at(url), queue_at(url)
    batch_of(queue).add(items("x"), 5, False)
    told: list[str] = []

    class Events(MagicMock):
        def unavailable(self, error: QueueUnavailable | None) -> None:
            told.append("back" if error is None else error.message)
            if error is not None:
                rename("gone", "cru_items")

    def rename(old: str, new: str) -> None:
        with admin.database.transaction() as run:
            run(f"ALTER TABLE {old} RENAME TO {new}")

    async def work() -> None:
        own = FleetWorker(queue, INFO, RunSettings(("false",), Path("/"), {}), WorkerLimits(2, once=True), Events())
        try:
            await asyncio.wait_for(own.run(), 60)
        finally:
            await own.close()

    rename("cru_items", "gone")
    asyncio.run(work())
    assert len(told) == 2 and 'relation "cru_items" does not exist' in told[0] and told[1] == "back"
    assert [row.state for row in batch_of(admin).rows()] == [TaskState.FINISHED]
