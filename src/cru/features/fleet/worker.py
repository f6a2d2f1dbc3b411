"""A worker: takes tasks, runs each in a process of its own, beats, takes over from workers that died."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar, TypeVarTuple

from msgspec import Struct
from msgspec.structs import replace

from cru.features.fleet import QueueUnavailable, UnreadableTask
from cru.features.fleet.queue import WorkQueue
from cru.features.fleet.records import QueuedTask, WorkResult
from cru.features.fleet.run_task import RunEnd, RunSettings, TaskRun
from cru.features.fleet.shared_run import run_shared
from cru.features.fleet.workers import DeadWorker, WorkerRegistry

T = TypeVar("T")
Args = TypeVarTuple("Args")

POLL_SECONDS = 0.5
"""Between two looks for tasks, when there was none."""
HELD_SECONDS = 2.0
"""Until a task is tried again whose context another run holds."""
FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0
"""Seconds between tries while the database is gone."""


class WorkerEvents(Protocol):
    """Hears what a worker does."""

    def started(self, task: QueuedTask) -> None: ...

    def finished(self, task: QueuedTask, result: WorkResult) -> None: ...

    def died(self, task: QueuedTask, why: str) -> None: ...

    def put_off(self, task: QueuedTask) -> None:
        """Its context is held by a run of somebody else."""
        ...

    def lost(self, task: QueuedTask) -> None:
        """Another worker has it by now, and its result counts."""
        ...

    def took_over(self, worker: DeadWorker, count: int) -> None: ...

    def unreadable(self, error: UnreadableTask) -> None:
        """A task has failed because its row cannot be read."""
        ...

    def unavailable(self, error: QueueUnavailable | None) -> None:
        """The database is gone; None: it is back."""
        ...


class WorkerLimits(Struct, frozen=True):
    """concurrency: tasks at once; batch: only of this one, "" = any; once: end when nothing is left to take; beat: seconds between two;
    patience: seconds in which a database that is gone must come back, 0 = any number."""

    concurrency: int = 1
    batch: str = ""
    once: bool = False
    beat: float = 5.0
    patience: float = 0.0


class FleetWorker:
    """Runs until it is stopped, or, with `once`, until no task is left that it can take."""

    def __init__(
        self, queue: WorkQueue, registry: WorkerRegistry, runs: RunSettings, limits: WorkerLimits, events: WorkerEvents
    ) -> None:
        self._queue, self._registry, self._runs, self._limits, self._events = queue, registry, runs, limits, events
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="queue")
        self._running: dict[asyncio.Task[None], TaskRun] = {}
        self._held: list[QueuedTask] = []
        self._is_claiming = False  # both belong to the thread
        self._stopping = asyncio.Event()
        self._is_ending = False
        self._is_gone = False  # a call has failed, and none that failed has worked since: on a full disk others work
        self._given_up: QueueUnavailable | None = None

    @property
    def running(self) -> int:
        return len(self._running)

    def stop(self) -> None:
        """Take nothing more; what runs may finish."""
        self._stopping.set()

    def end(self) -> None:
        """End what runs, too: it is handed back, and goes on in another worker."""
        self.stop()
        self._is_ending = True
        for run in self._running.values():
            run.end()

    async def call(self, work: Callable[[*Args], T], *arguments: *Args) -> T:
        """Work with the queue, in its thread. While the database is gone, try again. Raises QueueUnavailable if this is to end, or when the
        patience is over: then what runs is ended, too."""
        loop = asyncio.get_running_loop()
        wait, begin, has_failed = FIRST_WAIT, loop.time(), False
        while True:
            try:
                value = await loop.run_in_executor(self._thread, work, *arguments)
                break
            except QueueUnavailable as error:
                if 0 < self._limits.patience < loop.time() - begin and not self._is_ending:
                    self._given_up = _give_up(error, self._limits.patience)
                    self.end()
                if self._is_ending:
                    raise self._given_up or error from error
                if not self._is_gone:
                    self._events.unavailable(error)
                self._is_gone = has_failed = True
                await asyncio.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
        if has_failed:
            self._note_back()
        return value

    def _note_back(self) -> None:
        if self._is_gone:
            self._is_gone = False
            self._events.unavailable(None)

    async def run(self) -> None:
        """Work until the end. Raises WorkerReplaced, and QueueUnavailable if it could not even begin or leave."""
        loop = asyncio.get_running_loop()
        beats = asyncio.create_task(self._beat())
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await loop.run_in_executor(self._thread, self._registry.join)
            await self._recover()
            await self._work(stopped)
            await self._finish_running()
            if beats.done():
                beats.result()
            await self.call(self._registry.leave)
            self._note_back()  # the one that failed may still sleep
        finally:
            if self._running:  # the queue was given up
                self.end()
            stopped.cancel()
            beats.cancel()
            await asyncio.gather(stopped, beats, *self._running, return_exceptions=True)

    async def close(self) -> None:
        """Let go of the queue, when whoever calls has ended what calls `call`: what the thread still does is waited for, since a connection
        belongs to one thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._queue.close)
        self._registry.close()
        self._thread.shutdown(wait=False)

    async def _work(self, stopped: asyncio.Task[bool]) -> None:
        while not self._stopping.is_set():
            is_full = await self._fill()
            if self._limits.once and not self._running and not is_full and not await self._waits():
                return
            await asyncio.wait(
                [*self._running, stopped],
                timeout=None if is_full else POLL_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            self._reap()

    async def _waits(self) -> bool:
        return await self.call(self._queue.waiting, self._limits.batch) > 0

    async def _fill(self) -> bool:
        """Take tasks until all places are taken; whether they are."""
        while len(self._running) < self._limits.concurrency:
            try:
                task = await self.call(self._claim)
            except UnreadableTask as error:
                self._events.unreadable(error)
                continue
            if task is None:
                return False
            run = TaskRun(self._runs, task)
            self._running[asyncio.create_task(self._carry_out(task, run))] = run
            if self._is_ending:
                run.end()
            self._events.started(task)
        return True

    def _claim(self) -> QueuedTask | None:
        """In the thread. A claim whose answer was lost with the connection may have been one: what it took is handed back first."""
        if self._is_claiming:
            self._queue.hand_back_all_but(self._registry.id, self._held)
        self._is_claiming = True
        try:
            task = self._queue.claim(self._registry.id, self._limits.batch)
        except UnreadableTask:
            self._is_claiming = False
            raise
        self._is_claiming = False
        if task is not None:
            self._held.append(task)
        return task

    async def _finish_running(self) -> None:
        while self._running:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            self._reap()

    def _reap(self) -> None:
        for done in [task for task in self._running if task.done()]:
            del self._running[done]
            done.result()

    async def _carry_out(self, task: QueuedTask, run: TaskRun) -> None:
        begin = asyncio.get_running_loop().time()
        end = await self._run(task, run)
        took = asyncio.get_running_loop().time() - begin
        try:
            await self._settle(task, end, took)
        finally:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._held.remove, task)

    async def _run(self, task: QueuedTask, run: TaskRun) -> RunEnd:
        if not task.is_shared:
            return await run.run()
        return await run_shared(task, run, self._registry.id, self._queue.database, self._runs, self.call)

    async def _settle(self, task: QueuedTask, end: RunEnd, took: float) -> None:
        if end.result is not None:
            result = replace(end.result, worker=self._registry.id, seconds=round(took, 3))
            if await self.call(self._queue.finish, self._registry.id, task, result):
                self._events.finished(task, result)
            else:
                self._events.lost(task)
        else:
            await self._give_back(task, end)

    async def _give_back(self, task: QueuedTask, end: RunEnd) -> None:
        if end.why:
            await self.call(self._queue.count_death, self._registry.id, self._registry.host, task, end.why)
            self._events.died(task, end.why)
            return
        if end.is_held:
            self._events.put_off(task)
        wait = HELD_SECONDS if end.is_held else 0.0
        await self.call(self._queue.hand_back, self._registry.id, task, wait)

    async def _beat(self) -> None:
        """Until cancelled. Raises WorkerReplaced; nothing goes on without beats."""
        try:
            while True:
                await asyncio.sleep(self._limits.beat)
                await self.call(self._registry.beat)
                await self._recover()
        except Exception:
            self.end()
            raise

    async def _recover(self) -> None:
        """Take over what dead workers had."""
        for dead in await self.call(self._registry.find_dead):
            self._events.took_over(dead, await self.call(self._registry.take_over, dead))


def _give_up(error: QueueUnavailable, seconds: float) -> QueueUnavailable:
    return QueueUnavailable(
        f"{error.message}; cru tried again for {seconds:g} s",
        "make room on the disk, then run the same command again: what is finished is not asked again",
    )
