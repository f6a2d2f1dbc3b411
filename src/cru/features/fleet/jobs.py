"""Procrastinate's way to its jobs, for a worker that outlives its database and never ends a job that is another worker's by now.

Traps of Procrastinate 3.10 that this answers: a worker stops when a heartbeat fails; `finish_job` does not look whose the job is; a job
whose fetch was answered into a broken connection stays with its worker for ever; any worker that starts removes those that look dead.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback

from cru.features.fleet.queue import MISSED, DeadWorker, WorkerInfo, WorkQueue

Call = Callable[..., Awaitable[Any]]
"""(function, arguments): calls it in the thread of the queue, again while the database is gone."""


class FleetJobs(JobManager):
    """The jobs of one worker. retry: calls a coroutine function again while the database is gone; died: hears of workers taken for dead;
    is_closed: whether no further job may be fetched."""

    def __init__(
        self,
        connector: BaseAsyncConnector,
        queue: WorkQueue,
        info: WorkerInfo,
        call: Call,
        retry: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
        died: Callable[[DeadWorker], None],
        is_closed: Callable[[], bool],
    ) -> None:
        super().__init__(connector)
        self._queue, self._info, self._call, self._retry, self._died = queue, info, call, retry, died
        self._is_closed = is_closed
        self.worker = 0
        self._held: dict[int, int] = {}  # jobs, and which fetch of each: one that was queued again may be here twice
        self._is_fetching = False
        self._steady_since = self._last_beat = time.monotonic()

    async def register_worker(self) -> int:
        self.worker = await self._retry(super().register_worker)
        await self._call(self._queue.join, self.worker, self._info)
        return self.worker

    async def unregister_worker(self, worker_id: int) -> None:
        await self._call(self._queue.leave, worker_id)

    async def prune_stalled_workers(self, seconds_since_heartbeat: float) -> list[int]:
        """Remove nothing: `update_heartbeat` takes over what dead workers have, and removes them."""
        return []

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        async def fetch() -> Job | None:
            if self._is_fetching:
                await self._call(self._queue.hand_back_all_but, worker_id, frozenset(self._held))
            self._is_fetching = True
            job = await JobManager.fetch_job(self, queues, worker_id)
            self._is_fetching = False
            return job

        job: Job | None = None if self._is_closed() else await self._retry(fetch)
        if job is not None and job.id is not None:
            self._held[job.id] = job.attempts
        return job

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """End a job that its task has not ended, after an error, say, or as that of another program."""
        assert job.id is not None
        if self._held.get(job.id) == job.attempts:
            del self._held[job.id]
        await self._call(self._queue.end_unfinished, self.worker, self._info, job.id, job.attempts)

    async def update_heartbeat(self, worker_id: int) -> None:
        """Raises WorkerReplaced. A worker judges others once it has been on time itself for as long as they were late: one that was
        stopped, or had no database, judges no other."""
        await self._call(self._queue.beat, worker_id)
        now = time.monotonic()
        if now - self._last_beat > 2 * self._info.beat:
            self._steady_since = now
        self._last_beat = now
        if now - self._steady_since > MISSED * self._info.beat:
            for dead in await self._call(self._queue.take_over, worker_id):
                self._died(dead)

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        async def listen() -> None:
            await JobManager.listen_for_jobs(self, on_notification=on_notification, queues=queues)

        await self._retry(listen)
