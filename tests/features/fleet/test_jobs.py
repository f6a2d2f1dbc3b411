"""The jobs of a worker, on Procrastinate and Postgres: no way to end a job loses its item."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import procrastinate
import pytest
from procrastinate.jobs import Status
from tests.features.fleet.support import batch_of, items, queue_at

from cru.features.fleet.jobs import FleetJobs
from cru.features.fleet.queue import WorkerInfo, WorkQueue
from cru.features.fleet.records import TaskState, WorkResult, WorkStatus

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
