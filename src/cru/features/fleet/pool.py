"""Works on a batch of this machine: some items at once, each in a process of its own; those of one context one after another."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Collection
from typing import Protocol

from msgspec.structs import replace

from cru.features.fleet.local_batch import LocalBatch
from cru.features.fleet.records import QueuedTask, TaskRow
from cru.features.fleet.run_task import RunEnd, RunSettings, TaskRun

HELD_SECONDS = 2.0
"""Until an item is tried again whose context another run holds."""


class PoolEvents(Protocol):
    """Hears what becomes of items."""

    def started(self, task: QueuedTask) -> None: ...

    def finished(self, row: TaskRow) -> None: ...

    def died(self, task: QueuedTask, why: str) -> None: ...

    def put_off(self, task: QueuedTask) -> None:
        """Its context is held by another run."""
        ...


class ItemPool:
    """Runs the items of a batch that are not finished. batch: held by this process; ids: those to run; size: so many at once."""

    def __init__(
        self, batch: LocalBatch, ids: Collection[str], size: int, runs: RunSettings, events: PoolEvents
    ) -> None:
        self._batch, self._size, self._runs, self._events = batch, size, runs, events
        self._waiting: dict[str, deque[TaskRow]] = {}
        for row in batch.rows():
            if row.id in ids and row.result is None:
                self._waiting.setdefault(row.context, deque()).append(row)
        self._ready = [(rows[0].line, context) for context, rows in self._waiting.items()]
        heapq.heapify(self._ready)
        self._put_off = 0
        self._running: dict[asyncio.Task[None], TaskRun] = {}
        self._changed = asyncio.Event()
        self._is_stopping = False

    @property
    def running(self) -> int:
        return len(self._running)

    def stop(self) -> None:
        """Begin nothing more; what runs may finish."""
        self._is_stopping = True
        self._changed.set()

    def end(self) -> None:
        """End what runs, too: it goes on with the next run of the batch."""
        self.stop()
        for run in self._running.values():
            run.end()

    async def run(self) -> None:
        """Work until nothing is left, or until it is stopped. Raises FleetError if the journal cannot be written."""
        try:
            while self._fill():
                self._changed.clear()
                await self._changed.wait()
                for done in [task for task in self._running if task.done()]:
                    del self._running[done]
                    done.result()
        finally:
            self.end()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _fill(self) -> bool:
        """Begin items until all places are taken; whether there is something to wait for."""
        while self._ready and len(self._running) < self._size and not self._is_stopping:
            _, context = heapq.heappop(self._ready)
            task = self._batch.task(self._waiting[context][0].id)
            self._batch.begin(task.id)
            run = TaskRun(self._runs, task)
            work = asyncio.create_task(self._carry_out(task, run))
            work.add_done_callback(lambda _: self._changed.set())
            self._running[work] = run
            self._events.started(task)
        return bool(self._running) or (self._put_off > 0 and not self._is_stopping)

    async def _carry_out(self, task: QueuedTask, run: TaskRun) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        end = await run.run()
        context = task.item.context
        if self._settle(task, end, loop.time() - begin):
            self._waiting[context].popleft()
        if not self._waiting[context] or end.is_ended:
            return
        if end.is_held:
            self._put_off += 1
            loop.call_later(HELD_SECONDS, self._try_again, context)
        else:
            self._make_ready(context)

    def _settle(self, task: QueuedTask, end: RunEnd, seconds: float) -> bool:
        """Write down how a run ended; whether its item is finished."""
        if end.result is not None:
            self._batch.finish(task.id, replace(end.result, seconds=round(seconds, 3)))
        elif end.why:
            is_last = self._batch.count_death(task.id, end.why)
            self._events.died(task, end.why)
            if not is_last:
                return False
        else:
            self._batch.hand_back(task.id)
            if end.is_held:
                self._events.put_off(task)
            return False
        self._events.finished(self._batch.row(task.id))
        return True

    def _try_again(self, context: str) -> None:
        self._put_off -= 1
        self._make_ready(context)
        self._changed.set()

    def _make_ready(self, context: str) -> None:
        heapq.heappush(self._ready, (self._waiting[context][0].line, context))
