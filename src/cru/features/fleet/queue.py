"""The queue of the fleet: what a worker does with jobs of Procrastinate 3.10, which has them in Postgres. Each method is one transaction,
so that no kill leaves half of it.

Procrastinate chooses the next job (by priority, then by age, and one of a lock at a time; the lock is the conversation) and knows which
worker has it. It does not look which worker ends a job, counts no deaths and queues nothing again; that is done here.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import decode_json
from cru.core.base.files.atomic import file_lock, replace_file
from cru.core.base.files.regular import make_private_folder
from cru.core.conversations.entries import new_id
from cru.features.fleet import UnreadableTask, WorkerReplaced
from cru.features.fleet.batch import dead_result, prompt_key
from cru.features.fleet.database import Database, Run
from cru.features.fleet.records import VERSION, BatchItem, Death, QueuedTask, WorkResult, WorkStatus
from cru.features.fleet.schema import make_tables

TASK = "cru.item"
"""The name of the task of Procrastinate."""
SHARED = "cru-shared"
"""In place of a home: conversations that are in the database, too, for workers of all homes. Names of homes are names of queues."""
MISSED = 4
"""Beats without which a worker counts as dead."""
HOME_ID = "home-id"

_encode = msgspec.json.encode


class WorkerInfo(Struct, frozen=True):
    """A worker as others see it. name: host, process and a random part; places: items at once; beat: seconds between two signs of life."""

    name: str
    host: str
    places: int
    beat: float


class DeadWorker(Struct, frozen=True):
    """A worker that was taken for dead. count: tasks that it had; why: how its death is known."""

    name: str
    count: int
    why: str


class LeftTasks(Struct, frozen=True):
    """Queued tasks that a worker cannot take: of another home, and of a newer cru."""

    elsewhere: int
    newer: int


class WorkQueue:
    """The jobs of a database. home: the id of the home that holds their conversations."""

    def __init__(self, database: Database, home: str) -> None:
        self.database = database
        self.home = home
        self.place = database.place
        self.queues = [home, SHARED]

    def open(self) -> None:
        """Make the tables if they are not there. Raises QueueUnavailable, FleetError."""
        try:
            make_tables(self.database)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.database.close()

    # workers ----------------------------------------------------------------------------------------------------------------------

    def join(self, worker: int, info: WorkerInfo) -> None:
        """Say more of a worker that Procrastinate knows."""
        with self.database.transaction() as run:
            run(
                "INSERT INTO cru_fleet_workers VALUES (%(id)s, %(name)s, %(host)s, %(home)s, %(places)s, %(beat)s) ON CONFLICT DO NOTHING",
                id=worker, name=info.name, host=info.host, home=self.home, places=info.places, beat=info.beat,
            )  # fmt: skip

    def beat(self, worker: int) -> None:
        """Raises WorkerReplaced if others took this worker for dead."""
        with self.database.transaction() as run:
            rows = run(
                "UPDATE procrastinate_workers SET last_heartbeat = NOW() WHERE id = %(id)s RETURNING id", id=worker
            )
        if not rows:
            raise WorkerReplaced(
                "others took this worker for dead (was it stopped, or without its database?) and have its tasks",
                "the same command again takes part again",
            )

    def leave(self, worker: int) -> None:
        """Be gone; what this worker still has is queued again."""
        with self.database.transaction() as run:
            for (job,) in run(
                "SELECT id FROM procrastinate_jobs WHERE worker_id = %(id)s AND status = 'doing' FOR UPDATE", id=worker
            ):
                _queue_again(run, job)
            run("DELETE FROM procrastinate_workers WHERE id = %(id)s", id=worker)

    def take_over(self, worker: int) -> list[DeadWorker]:
        """Queue again what workers had that missed MISSED beats, by the database's clock, once among all that see them dead."""
        with self.database.transaction() as run:
            rows = run(
                "SELECT w.id, c.name, c.host FROM procrastinate_workers w JOIN cru_fleet_workers c USING (id) "
                "WHERE w.id <> %(id)s AND NOW() - w.last_heartbeat > %(missed)s * c.beat * INTERVAL '1 second' "
                "FOR UPDATE OF w SKIP LOCKED",
                id=worker, missed=MISSED,
            )  # fmt: skip
            return [_bury_worker(run, *row) for row in rows]

    # the tasks of a worker --------------------------------------------------------------------------------------------------------

    def task(self, job: int) -> QueuedTask | None:
        """What a job asks, None if its batch was forgotten. Raises UnreadableTask."""
        with self.database.transaction() as run:
            rows = run(
                "SELECT batch, id, attempt, item, deaths, max_deaths, home, version FROM cru_items WHERE job = %(job)s",
                job=job,
            )
        if not rows:
            return None
        batch, name, attempt, text, deaths, most, home, version = rows[0]
        task = QueuedTask(batch, name, "", BatchItem(""), len(read_deaths(deaths)), most, home == SHARED, job, version)
        if version > VERSION:
            return task
        try:
            item = decode_json(text, BatchItem)
        except msgspec.DecodeError as error:
            why = f"its item in the queue cannot be read: {error}"
            raise UnreadableTask(
                f"{batch}/{name} failed: {why}", "`cru batch --forget` removes its batch", task
            ) from error
        return replace(task, key=prompt_key(batch, item, attempt), item=item)

    def finish(self, worker: int, task: QueuedTask, result: WorkResult) -> WorkResult | None:
        """Write down what came of a task, once or more; the result with its deaths, None if another worker has it by now."""
        with self.database.transaction() as run:
            [(deaths, known)] = run("SELECT deaths, result FROM cru_items WHERE job = %(job)s", job=task.job) or [
                ("[]", "")
            ]
            result = replace(result, deaths=read_deaths(deaths))
            if known and known == _encode(result).decode():
                return result
            if not _owns(run, worker, task.job):
                return None
            _settle(run, task.job, result)
        return result

    def hand_back(self, worker: int, task: QueuedTask, seconds: float = 0.0) -> None:
        """Queue it again, for any worker, after so many seconds."""
        with self.database.transaction() as run:
            if _owns(run, worker, task.job):
                _queue_again(run, task.job, seconds)

    def hand_back_all_but(self, worker: int, jobs: Collection[int]) -> None:
        """Queue again what a worker has and does not know of: the answer to its request was lost."""
        with self.database.transaction() as run:
            for (job,) in run(
                "SELECT id FROM procrastinate_jobs WHERE worker_id = %(worker)s AND status = 'doing' FOR UPDATE",
                worker=worker,
            ):
                if job not in jobs:
                    _queue_again(run, job)

    def count_death(self, worker: int, info: WorkerInfo, task: QueuedTask, why: str) -> None:
        """Its run ended without a result while the worker lives: queue it again, or let it be if that was the last time."""
        with self.database.transaction() as run:
            if _owns(run, worker, task.job):
                _bury(run, task.job, info.name, info.host, why)

    def end_unfinished(self, worker: int, info: WorkerInfo, job: int, attempts: int) -> None:
        """End a job that has no result though its task has returned, as a death of its run. attempts: before this one."""
        with self.database.transaction() as run:
            is_same = run(
                "SELECT 1 FROM procrastinate_jobs WHERE id = %(job)s AND attempts = %(n)s", job=job, n=attempts
            )
            if is_same and _owns(run, worker, job):
                _bury(run, job, info.name, info.host, "the worker failed before it had a result")

    def has_work(self) -> bool:
        """Whether a task of this home and version is queued or runs."""
        with self.database.transaction() as run:
            rows = run(
                "SELECT 1 FROM procrastinate_jobs j JOIN cru_items i ON i.job = j.id WHERE j.queue_name = ANY(%(queues)s) "
                "AND j.status IN ('todo', 'doing') AND i.version <= %(version)s LIMIT 1",
                queues=self.queues, version=VERSION,
            )  # fmt: skip
        return bool(rows)

    def left_tasks(self) -> LeftTasks:
        """Queued tasks that workers of this home and version do not take."""
        with self.database.transaction() as run:
            [(elsewhere, newer)] = run(
                "SELECT COUNT(*) FILTER (WHERE j.queue_name <> ALL(%(queues)s)), "
                "COUNT(*) FILTER (WHERE j.queue_name = ANY(%(queues)s) AND i.version > %(version)s) "
                "FROM procrastinate_jobs j JOIN cru_items i ON i.job = j.id WHERE j.status = 'todo'",
                queues=self.queues, version=VERSION,
            )  # fmt: skip
        return LeftTasks(elsewhere, newer)


def read_deaths(text: str) -> tuple[Death, ...]:
    """The deaths in a column of cru_items; none if it cannot be read."""
    try:
        return decode_json(text, tuple[Death, ...])
    except msgspec.DecodeError:
        return ()


def _owns(run: Run, worker: int, job: int) -> bool:
    return bool(
        run(
            "SELECT 1 FROM procrastinate_jobs WHERE id = %(job)s AND worker_id = %(worker)s AND status = 'doing' FOR UPDATE",
            job=job,
            worker=worker,
        )
    )


def _settle(run: Run, job: int, result: WorkResult) -> None:
    """End an item and its job, which is failed unless there is an answer: so Procrastinate's own tools show it."""
    run(
        "UPDATE cru_items SET status = %(status)s, result = %(result)s, cost = %(cost)s, ended_at = clock_timestamp() WHERE job = %(job)s",
        status=result.status.value, result=_encode(result).decode(), cost=result.tokens.cost or 0.0, job=job,
    )  # fmt: skip
    status = "succeeded" if result.status is WorkStatus.DONE else "failed"
    run("SELECT procrastinate_finish_job_v1(%(job)s, %(status)s, false)", job=job, status=status)


def _queue_again(run: Run, job: int, seconds: float = 0.0) -> None:
    """Unless it is to be cancelled: then that is its end."""
    rows = run(
        "SELECT i.context FROM cru_items i JOIN procrastinate_jobs j ON j.id = i.job WHERE j.id = %(job)s AND j.abort_requested",
        job=job,
    )
    if rows:
        _settle(run, job, cancelled_result(rows[0][0]))
        return
    run("UPDATE cru_items SET provider = '' WHERE job = %(job)s", job=job)
    run(
        "SELECT procrastinate_retry_job_v2(%(job)s, NOW() + %(wait)s * INTERVAL '1 second', NULL, NULL, NULL)",
        job=job,
        wait=seconds,
    )


def _bury(run: Run, job: int, worker: str, host: str, why: str) -> None:
    """Count the death of a run: queue its task again, or leave it dead with its history."""
    rows = run("SELECT deaths, max_deaths, context FROM cru_items WHERE job = %(job)s", job=job)
    if not rows:  # its batch was forgotten
        run("SELECT procrastinate_finish_job_v1(%(job)s, 'failed', false)", job=job)
        return
    text, most, context = rows[0]
    deaths = (*read_deaths(text), Death(worker, host, time.time(), why))
    run("UPDATE cru_items SET deaths = %(deaths)s WHERE job = %(job)s", deaths=_encode(deaths).decode(), job=job)
    if len(deaths) < most:
        _queue_again(run, job)
    else:
        _settle(run, job, dead_result(context, deaths))


def _bury_worker(run: Run, worker: int, name: str, host: str) -> DeadWorker:
    why = f"the worker missed {MISSED} beats"
    jobs = run("SELECT id FROM procrastinate_jobs WHERE worker_id = %(id)s AND status = 'doing' FOR UPDATE", id=worker)
    for (job,) in jobs:
        _bury(run, job, name, host, why)
    run("DELETE FROM procrastinate_workers WHERE id = %(id)s", id=worker)
    return DeadWorker(name, len(jobs), why)


def cancelled_result(context: str) -> WorkResult:
    """The result of an item that was cancelled."""
    resume = f"cru -C {context} --resume"
    return WorkResult(WorkStatus.CANCELLED, code=1, error="it was cancelled", context=context, resume=resume)


def home_id(folder: Path) -> str:
    """The id of a home, made if it has none. Machines that share the home share it. A copy of a home gets one of its own, since it has
    not the conversations of the other. Raises OSError."""
    path = folder / HOME_ID
    make_private_folder(folder)
    own = str(folder.stat().st_ino)
    if (known := _known_id(path, own)) is None:
        with file_lock(path):  # of two processes that begin at once, both get the same id
            if (known := _known_id(path, own)) is None:
                known = new_id()
                replace_file(path, f"{known} {own}\n".encode())
    return known


def _known_id(path: Path, inode: str) -> str | None:
    known, _, place = path.read_text().strip().partition(" ") if path.exists() else ("", "", "")
    return known if known and place == inode else None
