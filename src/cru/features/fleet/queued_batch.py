"""One batch in the database: its items, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from cru.core.base.files import decode_json
from cru.features.fleet import ItemChanged
from cru.features.fleet.batch import RETRIED, AskedPrompt, BatchCounts, refuse_changed
from cru.features.fleet.database import Row, Run
from cru.features.fleet.queue import SHARED, TASK, WorkerInfo, WorkQueue, cancelled_result, read_deaths
from cru.features.fleet.records import VERSION, BatchItem, TaskRow, TaskState, WorkResult, WorkStatus

MANY = 100
"""Jobs queued at once for which the database counts its table anew: planned for an empty one, each fetch compares all jobs with all."""
_encode = msgspec.json.encode
_ROW = """
SELECT i.id, i.line, i.item, i.context, i.deaths, i.result, j.status, COALESCE(w.name, '')
FROM cru_items i LEFT JOIN procrastinate_jobs j ON j.id = i.job LEFT JOIN cru_fleet_workers w ON w.id = j.worker_id
"""
_HAS_JOB = "EXISTS (SELECT 1 FROM procrastinate_jobs j WHERE j.id = i.job AND j.status IN ('todo', 'doing'))"
"""Of `i`, an item: without a result and such a job it gets none, because another program has ended or deleted its job."""


class QueuedBatch:
    """A batch in the queue."""

    def __init__(self, queue: WorkQueue, name: str) -> None:
        self.name, self.place, self.database = name, queue.place, queue.database
        self._queue = queue

    def add(self, items: Sequence[tuple[int, BatchItem]], max_deaths: int, is_shared: bool, priority: int = 0) -> int:
        """Queue the items (line, item) that are not there yet; how many. is_shared: their conversations are in the database, too. Raises
        ItemChanged, and then none is queued."""
        home = SHARED if is_shared else self._queue.home
        with self.database.transaction() as run:
            rows = run("SELECT id, item, line, home FROM cru_items WHERE batch = %(batch)s FOR UPDATE", batch=self.name)
            _refuse_other_home(self.name, home, {row[3] for row in rows})
            known = {row[0]: (row[1], row[2]) for row in rows}
            for line, item in items:
                self._add(run, line, item, known.get(item.id), {"home": home, "most": max_deaths, "priority": priority})
            return self._queue_new(run)

    def _add(
        self, run: Run, line: int, item: BatchItem, known: tuple[str, int] | None, more: dict[str, object]
    ) -> None:
        text = _encode(item).decode()
        if known == (text, line):
            return
        if known is not None:
            _refuse_changed_text(line, item, known[0])
            run(
                "UPDATE cru_items SET line = %(line)s, item = %(item)s, version = %(version)s "
                "WHERE batch = %(batch)s AND id = %(id)s AND status = ''",
                line=line, item=text, version=item.version, batch=self.name, id=item.id,
            )  # fmt: skip
            return
        run(
            "INSERT INTO cru_items (batch, id, line, version, home, context, item, priority, max_deaths) VALUES "
            "(%(batch)s, %(id)s, %(line)s, %(version)s, %(home)s, %(context)s, %(item)s, %(priority)s, %(most)s)",
            batch=self.name, id=item.id, line=line, version=item.version, context=item.context, item=text, **more,
        )  # fmt: skip

    def retry(self, ids: Iterable[str], max_deaths: int) -> int:
        """Queue items again that ended otherwise than done; how many. One that was denied is asked anew, others go on."""
        with self.database.transaction() as run:
            for name in ids:
                run(
                    "UPDATE cru_items i SET job = NULL, attempt = attempt + (status = 'denied')::int, status = '', result = '', "
                    "deaths = '[]', max_deaths = %(most)s WHERE batch = %(batch)s AND id = %(id)s "
                    f"AND (status = ANY(%(retried)s) OR status = '' AND NOT {_HAS_JOB})",
                    batch=self.name, id=name, most=max_deaths, retried=[status.value for status in RETRIED],
                )  # fmt: skip
            return self._queue_new(run)

    def _queue_new(self, run: Run) -> int:
        """Queue all items that have no job, in their order, so that those of one conversation run in it."""
        rows = run(
            "SELECT id, home, context, priority FROM cru_items WHERE batch = %(batch)s AND job IS NULL ORDER BY line, id",
            batch=self.name,
        )
        for name, home, context, priority in rows:
            run(
                "UPDATE cru_items SET job = (procrastinate_defer_jobs_v1(ARRAY[ROW(%(queue)s, %(task)s, %(priority)s, %(lock)s, NULL, "
                "jsonb_build_object('batch', %(batch)s::text, 'id', %(id)s::text), NULL)::procrastinate_job_to_defer_v1]))[1] "
                "WHERE batch = %(batch)s AND id = %(id)s",
                queue=home, task=TASK, priority=priority, lock=f"{home}/{context}", batch=self.name, id=name,
            )  # fmt: skip
        if len(rows) >= MANY:
            run("ANALYZE procrastinate_jobs")
        return len(rows)

    def cancel(self, ids: Iterable[str]) -> int:
        """Cancel items that are not finished; how many. One that runs is ended by its worker, and counts when it has ended."""
        count = 0
        with self.database.transaction() as run:
            for name in ids:
                rows = run(
                    "SELECT job, context FROM cru_items WHERE batch = %(batch)s AND id = %(id)s AND status = '' FOR UPDATE",
                    batch=self.name,
                    id=name,
                )
                for job, context in rows:
                    [(is_known,)] = run("SELECT procrastinate_cancel_job_v1(%(job)s, true, false) IS NOT NULL", job=job)
                    count += is_known
                    run(
                        "UPDATE cru_items i SET status = 'cancelled', result = %(result)s, ended_at = clock_timestamp() "
                        "FROM procrastinate_jobs j WHERE i.job = %(job)s AND j.id = i.job AND j.status = 'cancelled'",
                        job=job, result=_encode(cancelled_result(context)).decode(),
                    )  # fmt: skip
        return count

    def rows(self) -> list[TaskRow]:
        """All items, in the order of the file."""
        with self.database.transaction() as run:
            rows = run(f"{_ROW} WHERE i.batch = %(batch)s ORDER BY i.line, i.id", batch=self.name)
        return [_task_row(row) for row in rows]

    def items(self) -> list[tuple[int, BatchItem]]:
        """The items with their lines, in their order; those of a newer cru, and those that cannot be read, are left out."""
        with self.database.transaction() as run:
            rows = run(
                "SELECT line, item FROM cru_items WHERE batch = %(batch)s AND version <= %(version)s ORDER BY line, id",
                batch=self.name,
                version=VERSION,
            )
        return [(line, item) for line, text in rows if (item := _readable(text)) is not None]

    def is_shared(self) -> bool:
        """Whether the conversations are in the database, too."""
        with self.database.transaction() as run:
            return bool(
                run(
                    "SELECT 1 FROM cru_items WHERE batch = %(batch)s AND home = %(home)s LIMIT 1",
                    batch=self.name,
                    home=SHARED,
                )
            )

    def finished_since(self, known: set[str]) -> list[TaskRow]:
        """Finished items that are not known yet, the first that ended first."""
        with self.database.transaction() as run:
            ids = run(
                f"SELECT i.id FROM cru_items i WHERE i.batch = %(batch)s AND (i.status <> '' OR NOT {_HAS_JOB}) "
                "ORDER BY i.ended_at, i.line",
                batch=self.name,
            )
            new = [name for (name,) in ids if name not in known]
            rows = run(
                f"{_ROW} WHERE i.batch = %(batch)s AND i.id = ANY(%(ids)s) ORDER BY i.ended_at, i.line",
                batch=self.name,
                ids=new,
            )
        return [_task_row(row) for row in rows]

    def running(self) -> int:
        """How many items run."""
        with self.database.transaction() as run:
            [(count,)] = run(
                "SELECT COUNT(*) FROM cru_items i JOIN procrastinate_jobs j ON j.id = i.job "
                "WHERE i.batch = %(batch)s AND j.status = 'doing'",
                batch=self.name,
            )
        return int(count)

    def forget(self) -> int:
        """Remove what is known of the batch, but for what runs; how many items. The conversations stay."""
        with self.database.transaction() as run:
            rows = run(
                "DELETE FROM cru_items i WHERE i.batch = %(batch)s AND i.home IN (%(home)s, %(shared)s) AND NOT EXISTS "
                "(SELECT 1 FROM procrastinate_jobs j WHERE j.id = i.job AND j.status = 'doing') RETURNING i.job",
                batch=self.name, home=self._queue.home, shared=SHARED,
            )  # fmt: skip
            run("DELETE FROM procrastinate_jobs WHERE id = ANY(%(jobs)s)", jobs=[job for (job,) in rows])
        return len(rows)

    def close(self) -> None:
        self._queue.close()


def queued_batches(queue: WorkQueue) -> list[BatchCounts]:
    """How far each batch in the database is, the newest last."""
    with queue.database.transaction() as run:
        rows = run(
            "SELECT i.batch, CASE WHEN i.status <> '' THEN 'finished' WHEN j.status = 'doing' THEN 'running' ELSE 'queued' END, i.status, "
            "COUNT(*), MIN(i.job) FROM (SELECT i.batch, i.job, "
            f"CASE WHEN i.status = '' AND NOT {_HAS_JOB} THEN 'failed' ELSE i.status END AS status FROM cru_items i) i "
            "LEFT JOIN procrastinate_jobs j ON j.id = i.job GROUP BY 1, 2, 3 ORDER BY 5, 1"
        )
    return [_counts(name, [row for row in rows if row[0] == name]) for name in dict.fromkeys(row[0] for row in rows)]


class WorkerRow(Struct, frozen=True):
    """A worker as others see it. running: items; silent: seconds since its last beat."""

    info: WorkerInfo
    running: int
    silent: float


def list_workers(queue: WorkQueue) -> list[WorkerRow]:
    """All workers of the database, by name."""
    with queue.database.transaction() as run:
        rows = run(
            "SELECT c.name, c.host, c.places, c.beat, EXTRACT(EPOCH FROM NOW() - w.last_heartbeat)::float8, "
            "(SELECT COUNT(*) FROM procrastinate_jobs j WHERE j.worker_id = w.id AND j.status = 'doing') "
            "FROM cru_fleet_workers c JOIN procrastinate_workers w USING (id) ORDER BY c.name"
        )
    return [WorkerRow(WorkerInfo(*row[:4]), row[5], row[4]) for row in rows]


def _counts(name: str, rows: Sequence[Row]) -> BatchCounts:
    states: dict[TaskState, int] = {}
    statuses: dict[WorkStatus, int] = {}
    for _, state, status, count, _ in rows:
        states[TaskState(state)] = states.get(TaskState(state), 0) + count
        if status:
            statuses[WorkStatus(status)] = statuses.get(WorkStatus(status), 0) + count
    return BatchCounts(name, states, statuses)


def _task_row(row: Row) -> TaskRow:
    name, line, item, context, deaths, text, job, worker = row
    result = _result(text) if text else None
    if result is None and job not in ("todo", "doing"):
        result = WorkResult(
            WorkStatus.FAILED,
            code=1,
            error=f"its job was ended by another program: {job or 'deleted'}",
            context=context,
        )
    state = TaskState.QUEUED if result is None else TaskState.FINISHED
    state = TaskState.RUNNING if result is None and job == "doing" else state
    try:
        prompt = decode_json(item, AskedPrompt).prompt
    except msgspec.DecodeError:
        prompt = "(its item in the queue cannot be read)"
    return TaskRow(name, line, state, prompt, context, worker, len(read_deaths(deaths)), result)


def _result(text: str) -> WorkResult:
    try:
        return decode_json(text, WorkResult)
    except msgspec.DecodeError as error:
        return WorkResult(WorkStatus.FAILED, code=1, error=f"its result in the queue cannot be read: {error}")


def _readable(text: str) -> BatchItem | None:
    """Whoever runs an item that cannot be read reports it."""
    try:
        return decode_json(text, BatchItem)
    except msgspec.DecodeError:
        return None


def _refuse_changed_text(line: int, item: BatchItem, text: str) -> None:
    """Raises ItemChanged."""
    try:
        known = decode_json(text, AskedPrompt)
    except msgspec.DecodeError as error:
        raise ItemChanged(
            f"line {line}: item {item.id} is in the queue already, and cannot be read there: {error}",
            "give it another id, or the whole batch another name: --name NAME",
        ) from error
    refuse_changed(line, item, known)


def _refuse_other_home(batch: str, home: str, homes: set[str]) -> None:
    """Raises ItemChanged if the batch is one of another home."""
    if homes <= {home}:
        return
    if home != SHARED and SHARED in homes:
        raise ItemChanged(
            f"the conversations of the batch {batch} are in the database", "add --shared, or another --name"
        )
    if home == SHARED:
        raise ItemChanged(f"the batch {batch} was queued without --shared", "leave it out, or take another --name")
    raise ItemChanged(
        f"the batch {batch} is one of another home that uses this database", "take another name: --name NAME"
    )
