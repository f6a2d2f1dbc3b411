"""A worker: takes jobs from Procrastinate, runs each in a process of its own, beats, takes over from workers that died."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, TypeVarTuple

import procrastinate
from msgspec import Struct
from msgspec.structs import replace
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker

from cru.features.fleet import FleetError, QueueUnavailable, UnreadableTask, WorkerReplaced
from cru.features.fleet.database import POSTGRES_OPTIONS
from cru.features.fleet.jobs import FleetJobs
from cru.features.fleet.limits import admit
from cru.features.fleet.queue import TASK, DeadWorker, WorkerInfo, WorkQueue, cancelled_result
from cru.features.fleet.records import VERSION, QueuedTask, WorkResult, WorkStatus
from cru.features.fleet.run_task import RunEnd, RunSettings, TaskRun
from cru.features.fleet.shared_run import run_shared

T = TypeVar("T")
Args = TypeVarTuple("Args")

POLL_SECONDS = 0.5
"""Between two looks for jobs whose time has come, and for the next one of a conversation. New ones are announced."""
HELD_SECONDS = 2.0
"""Until a task is tried again whose context another run holds."""
LIMITED_SECONDS = 2.0
"""Until a task is tried again whose provider has reached its limit."""
NEWER_SECONDS = 60.0
"""Until a task of a newer cru may be taken again."""
FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0
"""Seconds between tries while the database is gone."""
LIBRARIES = ("procrastinate", "psycopg.pool")
"""Whose log is not shown: the worker says itself what happens."""


class WorkerEvents(Protocol):
    """Hears what a worker does."""

    def started(self, task: QueuedTask) -> None: ...

    def finished(self, task: QueuedTask, result: WorkResult) -> None: ...

    def died(self, task: QueuedTask, why: str) -> None: ...

    def put_off(self, task: QueuedTask) -> None:
        """Its context is held by another run."""
        ...

    def limited(self, provider: str) -> None:
        """The limit of a provider is reached."""
        ...

    def lost(self, task: QueuedTask) -> None:
        """Another worker has it by now, and its result counts."""
        ...

    def took_over(self, worker: DeadWorker) -> None: ...

    def unreadable(self, error: UnreadableTask) -> None:
        """A task has failed because its row cannot be read."""
        ...

    def unavailable(self, error: QueueUnavailable | None) -> None:
        """The database is gone; None: it is back."""
        ...


class WorkerLimits(Struct, frozen=True):
    """places: tasks at once; once: end when nothing is left to take; beat: seconds between two signs of life; provider_of: the provider
    that an item with this model asks."""

    places: int = 1
    once: bool = False
    beat: float = 5.0
    provider_of: Callable[[str], str] = lambda model: model.partition(":")[0]


class LastError(logging.Handler):
    """Keeps the last error of libraries that only log why they end."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.text = "no reason is known"

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


class FleetWorker:
    """Runs until it is stopped, or, with `once`, until no task is queued or runs that it could take."""

    def __init__(
        self, queue: WorkQueue, info: WorkerInfo, runs: RunSettings, limits: WorkerLimits, events: WorkerEvents
    ) -> None:
        self._queue, self._info, self._runs, self._limits, self._events = queue, info, runs, limits, events
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="queue")
        self._running: dict[int, TaskRun] = {}
        self._worker: Worker | None = None
        self._is_stopping = self._is_ending = False
        self._is_gone = False
        self._problem: Exception | None = None
        self._log = LastError()
        for name in LIBRARIES:
            logging.getLogger(name).propagate = False
            logging.getLogger(name).addHandler(self._log)

    @property
    def running(self) -> int:
        return len(self._running)

    def stop(self) -> None:
        """Take nothing more; what runs may finish."""
        self._is_stopping = True
        self._stop_if_idle()

    def end(self) -> None:
        """End what runs, too: it is handed back, and goes on in another worker."""
        self._is_ending = True
        self.stop()
        for run in self._running.values():
            run.end()

    async def run(self) -> None:
        """Work until the end. Raises WorkerReplaced, and QueueUnavailable if it could not even begin or leave."""
        connector = procrastinate.PsycopgConnector(
            conninfo=self._queue.database.url,
            kwargs=_options(self._queue),
            min_size=1,
            max_size=2,
            timeout=LONGEST_WAIT,
        )
        app = procrastinate.App(connector=connector)
        jobs = FleetJobs(
            connector, self._queue, self._info, self._call_or_note, self._retry, self._events.took_over,
            lambda: self._is_stopping,
        )  # fmt: skip
        app.job_manager = jobs
        app.task(name=TASK, pass_context=True)(self._perform)
        try:
            async with app.open_async():
                self._worker = Worker(
                    app, queues=self._queue.queues, name=self._info.name, concurrency=self._limits.places,
                    fetch_job_polling_interval=POLL_SECONDS, abort_job_polling_interval=self._limits.beat,
                    update_heartbeat_interval=self._limits.beat, install_signal_handlers=False,
                )  # fmt: skip
                watch = asyncio.create_task(self._stop_when_done())
                try:
                    await self._worker.run()  # type: ignore[no-untyped-call]
                finally:
                    watch.cancel()
                    await asyncio.gather(watch, return_exceptions=True)
        except ConnectorException as error:
            raise _unavailable(self._queue, error) from error
        if self._problem is not None:
            raise self._problem
        if not self._is_stopping:
            raise FleetError(
                f"the worker ended unexpectedly: {self._log.text}", "the same command again takes part again"
            )

    async def close(self) -> None:
        """Let go of the queue. What the thread still does is waited for, since a connection belongs to one thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._queue.close)
        self._thread.shutdown(wait=False)

    async def _stop_when_done(self) -> None:
        while self._limits.once and not self._is_stopping:
            if not self._running and not await self._call(self._queue.has_work):
                self.stop()
            await asyncio.sleep(POLL_SECONDS)
        self._stop_if_idle()  # Procrastinate's worker may have begun after `stop`

    def _stop_if_idle(self) -> None:
        """Stop Procrastinate's worker once nothing runs: without its beats, others would take over what still runs."""
        if self._is_stopping and not self._running and self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]

    # the database -----------------------------------------------------------------------------------------------------------------

    async def _call(self, work: Callable[[*Args], T], *arguments: *Args) -> T:
        """Work with the queue, in its thread. While the database is gone, try again. Raises QueueUnavailable if this is to end."""
        loop = asyncio.get_running_loop()
        result: T = await self._retry(lambda: loop.run_in_executor(self._thread, lambda: work(*arguments)))
        return result

    async def _call_or_note(self, work: Callable[[*Args], T], *arguments: *Args) -> T:
        """`_call` for Procrastinate, which only logs what goes wrong: then what runs is ended, and `run` raises it."""
        try:
            return await self._call(work, *arguments)
        except (QueueUnavailable, WorkerReplaced) as error:
            self._problem = self._problem or error
            self.end()
            raise

    async def _retry(self, work: Callable[[], Awaitable[Any]]) -> Any:
        wait, has_failed = FIRST_WAIT, False
        while True:
            try:
                value = await work()
                break
            except (QueueUnavailable, ConnectorException) as error:
                problem = error if isinstance(error, QueueUnavailable) else _unavailable(self._queue, error)
                if self._is_ending:
                    raise problem from error
                if not self._is_gone:
                    self._events.unavailable(problem)
                self._is_gone = has_failed = True
                await asyncio.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
        if has_failed and self._is_gone:
            self._is_gone = False
            self._events.unavailable(None)
        return value

    # a job ------------------------------------------------------------------------------------------------------------------------

    async def _perform(self, context: procrastinate.JobContext, /, **_: object) -> None:
        """The task of Procrastinate. The row of the item says what it asks, and gets what came of it."""
        job = context.job
        assert job.id is not None and job.worker_id is not None
        try:
            task = await self._call_or_note(self._queue.task, job.id)
        except UnreadableTask as error:
            self._events.unreadable(error)
            result = WorkResult(WorkStatus.FAILED, code=1, error=error.message, worker=self._info.name)
            await self._call_or_note(self._queue.finish, job.worker_id, error.task, result)
            return
        if task is None:
            return
        if task.version > VERSION or self._is_stopping:
            wait = NEWER_SECONDS if task.version > VERSION else 0.0
            await self._call_or_note(self._queue.hand_back, job.worker_id, task, wait)
            return
        provider = self._limits.provider_of(task.item.model)
        if not await self._call_or_note(admit, self._queue, task.job, provider):
            self._events.limited(provider)
            await asyncio.sleep(
                LIMITED_SECONDS
            )  # with the place taken: else the next task of the queue would be tried at once
            await self._call_or_note(self._queue.hand_back, job.worker_id, task)
            return
        await self._carry_out(task, job.worker_id)

    async def _carry_out(self, task: QueuedTask, worker: int) -> None:
        run = self._running[task.job] = TaskRun(self._runs, task)
        self._events.started(task)
        loop = asyncio.get_running_loop()
        begin, is_cancelled = loop.time(), False
        work = asyncio.create_task(self._run(task, run, worker))
        try:
            try:
                end = await asyncio.shield(work)
            except asyncio.CancelledError:  # `cru fleet cancel`
                is_cancelled = True
                run.end()
                end = await work
            if end.is_ended and is_cancelled:
                end = RunEnd(cancelled_result(task.item.context))
            await self._settle(task, worker, end, loop.time() - begin)
        finally:
            del self._running[task.job]
            self._stop_if_idle()

    async def _run(self, task: QueuedTask, run: TaskRun, worker: int) -> RunEnd:
        if not task.is_shared:
            return await run.run()
        return await run_shared(task, run, worker, self._queue.database, self._runs, self._call_or_note)

    async def _settle(self, task: QueuedTask, worker: int, end: RunEnd, seconds: float) -> None:
        if end.result is not None:
            result = replace(end.result, worker=self._info.name, seconds=round(seconds, 3))
            written = await self._call_or_note(self._queue.finish, worker, task, result)
            if written is not None:
                self._events.finished(task, written)
            else:
                self._events.lost(task)
        elif end.why:
            await self._call_or_note(self._queue.count_death, worker, self._info, task, end.why)
            self._events.died(task, end.why)
        else:
            if end.is_held:
                self._events.put_off(task)
            await self._call_or_note(self._queue.hand_back, worker, task, HELD_SECONDS if end.is_held else 0.0)


def _options(queue: WorkQueue) -> dict[str, Any]:
    return {name: value for name, value in POSTGRES_OPTIONS.items() if name not in queue.database.chosen()}


def _unavailable(queue: WorkQueue, error: Exception) -> QueueUnavailable:
    text = str(error.__cause__ or error).strip().splitlines()
    why = text[0] if text else type(error).__name__
    return QueueUnavailable(
        f"the queue {queue.place} cannot be used: {why}", "is the server up, and does CRU_DATABASE_URL name it?"
    )
