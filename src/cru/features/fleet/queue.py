"""The queue: who has which task. Each method is one transaction, so that no kill leaves half of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from cru.features.fleet import UnreadableTask
from cru.features.fleet.batch import RETRIED, AskedPrompt, BatchCounts, prompt_key
from cru.features.fleet.database import Database, Row, Run
from cru.features.fleet.identity import (
    SHARED,
    decode_item,
    readable_items,
    refuse_changed_text,
    refuse_other_home,
)
from cru.features.fleet.records import (
    VERSION,
    BatchItem,
    Death,
    QueuedTask,
    TaskRow,
    TaskState,
    WorkResult,
    WorkStatus,
)
from cru.features.fleet.schema import make_tables

_encode = msgspec.json.encode


class LeftTasks(Struct, frozen=True):
    """Queued tasks that a worker cannot take: of another home, and of a newer cru."""

    elsewhere: int
    newer: int


class WorkQueue:
    """Tasks in a database. home: the id of the home that holds their contexts."""

    def __init__(self, database: Database, home: str) -> None:
        self.database = database
        self.home = home
        self._is_made = False

    @property
    def place(self) -> str:
        return self.database.place

    def open(self) -> None:
        """Make the tables if they are not there. Raises QueueTooNew, QueueUnavailable."""
        if self._is_made:
            return
        try:
            make_tables(self.database)
        except BaseException:
            self.close()
            raise
        self._is_made = True

    def close(self) -> None:
        self.database.close()

    def add(self, batch: str, items: Sequence[tuple[int, BatchItem]], max_deaths: int, is_shared: bool = False) -> int:
        """Queue the items (line, item) that are not there yet; how many. is_shared: their conversations are in the database, too. Raises
        ItemChanged, and then none is queued."""
        home = SHARED if is_shared else self.home
        with self.database.transaction() as run:
            rows = run("SELECT id, item, line, home FROM cru_tasks WHERE batch = :batch", batch=batch)
            refuse_other_home(batch, home, {row[3] for row in rows})
            known = {row[0]: (row[1], row[2]) for row in rows}
            [(now,)] = run("SELECT {now}")
            added = 0
            for line, item in items:
                text = _encode(item).decode()
                if known.get(item.id) == (text, line):
                    continue
                if item.id in known:
                    refuse_changed_text(line, item, known[item.id][0])
                    run(
                        "UPDATE cru_tasks SET line = :line, item = :item WHERE batch = :batch AND id = :id AND state <> 'running'",
                        line=line,
                        item=text,
                        batch=batch,
                        id=item.id,
                    )
                    continue
                added += 1
                run(
                    "INSERT INTO cru_tasks (batch, id, line, version, home, context, item, state, max_deaths, queued_at) "
                    "VALUES (:batch, :id, :line, :version, :home, :context, :item, 'queued', :most, :now)",
                    batch=batch,
                    id=item.id,
                    line=line,
                    version=item.version,
                    home=home,
                    context=item.context,
                    item=text,
                    most=max_deaths,
                    now=now,
                )
        return added

    def retry(self, batch: str, ids: Iterable[str], max_deaths: int) -> int:
        """Queue tasks again that ended otherwise than done; how many. One that was denied is asked anew, others go on."""
        count = 0
        with self.database.transaction() as run:
            for task in ids:
                rows = run(
                    "SELECT result FROM cru_tasks WHERE batch = :batch AND id = :id AND state = 'finished'",
                    batch=batch,
                    id=task,
                )
                result = _result(rows[0][0]) if rows else None
                if result is None or result.status not in RETRIED:
                    continue
                count += 1
                run(
                    "UPDATE cru_tasks SET state = 'queued', status = '', result = '', worker = '', not_before = 0, deaths = 0, "
                    "max_deaths = :most, attempt = attempt + :anew WHERE batch = :batch AND id = :id",
                    anew=int(result.status is WorkStatus.DENIED),
                    batch=batch,
                    id=task,
                    most=max_deaths,
                )
                run("DELETE FROM cru_deaths WHERE batch = :batch AND id = :id", batch=batch, id=task)
        return count

    def claim(self, worker: str, batch: str = "") -> QueuedTask | None:
        """Take the oldest task that may run, of one batch or any; None if there is none, or if the worker is not known any more. No two
        tasks of a context run at once, and those of one batch run in their order, one that was put off included. Raises UnreadableTask
        for one whose item cannot be read, which has then failed."""
        with self.database.transaction() as run:
            rows = run(CLAIM, worker=worker, batch=batch, version=VERSION, home=self.home)
        if not rows:
            return None
        name, task, attempt, text, deaths, most, home = rows[0]
        try:
            item = decode_item(text, BatchItem)
        except msgspec.DecodeError as error:
            why = f"its item in the queue cannot be read: {error}"
            unreadable = QueuedTask(name, task, "", BatchItem(""), deaths, most)
            self.finish(worker, unreadable, WorkResult(WorkStatus.FAILED, code=1, error=why, worker=worker))
            raise UnreadableTask(f"{name}/{task} failed: {why}", "`cru batch --forget` removes its batch") from error
        return QueuedTask(name, task, prompt_key(name, item, attempt), item, deaths, most, home == SHARED)

    def finish(self, worker: str, task: QueuedTask, result: WorkResult) -> bool:
        """Write down what came of a task; False if it is another worker's by now. Once more is as good as once."""
        with self.database.transaction() as run:
            deaths = tuple(_deaths(run, task.batch, task.id))
            result = msgspec.structs.replace(result, deaths=deaths)
            rows = run(
                "UPDATE cru_tasks SET state = 'finished', ended_at = {now}, status = :status, result = :result "
                "WHERE batch = :batch AND id = :id AND worker = :worker AND (state = 'running' OR status = :status) RETURNING id",
                status=result.status.value,
                result=_encode(result).decode(),
                batch=task.batch,
                id=task.id,
                worker=worker,
            )
        return bool(rows)

    def hand_back(self, worker: str, task: QueuedTask, seconds: float = 0.0) -> None:
        """Queue it again, for anybody, after so many seconds."""
        with self.database.transaction() as run:
            run(
                "UPDATE cru_tasks SET state = 'queued', worker = '', not_before = {now} + :wait "
                "WHERE batch = :batch AND id = :id AND worker = :worker AND state = 'running'",
                wait=int(seconds * 1000),
                batch=task.batch,
                id=task.id,
                worker=worker,
            )

    def hand_back_all_but(self, worker: str, tasks: Iterable[QueuedTask]) -> int:
        """Queue again what a worker has and does not know of: the answer to its claim was lost; how many."""
        held = {(task.batch, task.id) for task in tasks}
        with self.database.transaction() as run:
            rows = run("SELECT batch, id FROM cru_tasks WHERE worker = :worker AND state = 'running'", worker=worker)
            lost = [row for row in rows if (row[0], row[1]) not in held]
            for batch, task in lost:
                run(
                    "UPDATE cru_tasks SET state = 'queued', worker = '' WHERE batch = :batch AND id = :id",
                    batch=batch,
                    id=task,
                )
        return len(lost)

    def count_death(self, worker: str, host: str, task: QueuedTask, why: str) -> None:
        """Its run ended without a result while the worker lives: queue it again, or let it be if that was the last time."""
        with self.database.transaction() as run:
            rows = run(
                "SELECT batch, id, deaths, max_deaths, context FROM cru_tasks "
                "WHERE batch = :batch AND id = :id AND worker = :worker AND state = 'running'",
                batch=task.batch,
                id=task.id,
                worker=worker,
            )
            for row in rows:
                bury(run, row, worker, host, why)

    def rows(self, batch: str) -> list[TaskRow]:
        """All tasks of a batch, in the order of its file."""
        with self.database.transaction() as run:
            rows = run(
                "SELECT id, line, state, item, context, worker, deaths, result FROM cru_tasks WHERE batch = :batch ORDER BY line, id",
                batch=batch,
            )
        return [_task_row(row) for row in rows]

    def items(self, batch: str) -> list[tuple[int, BatchItem]]:
        """The items of a batch with their lines, in their order; those of a newer cru, and those that cannot be read, are left out."""
        with self.database.transaction() as run:
            rows = run(
                "SELECT line, item FROM cru_tasks WHERE batch = :batch AND version <= :version ORDER BY line, id",
                batch=batch,
                version=VERSION,
            )
        return list(readable_items(rows))

    def is_shared(self, batch: str) -> bool:
        """Whether the conversations of a batch are in the database, too."""
        with self.database.transaction() as run:
            return bool(run("SELECT 1 FROM cru_tasks WHERE batch = :batch AND home = '' LIMIT 1", batch=batch))

    def finished_since(self, batch: str, known: set[str]) -> list[TaskRow]:
        """Finished tasks of a batch that are not known yet, the first that ended first."""
        with self.database.transaction() as run:
            ids = [
                row[0]
                for row in run(
                    "SELECT id FROM cru_tasks WHERE batch = :batch AND state = 'finished' ORDER BY ended_at, line",
                    batch=batch,
                )
                if row[0] not in known
            ]
            return [
                _task_row(row)
                for task in ids
                for row in run(
                    "SELECT id, line, state, item, context, worker, deaths, result FROM cru_tasks WHERE batch = :batch AND id = :id",
                    batch=batch,
                    id=task,
                )
            ]

    def counts(self, batch: str = "") -> list[BatchCounts]:
        """How far each batch is, or one, the newest last."""
        with self.database.transaction() as run:
            rows = run(COUNTS, batch=batch)
        names = dict.fromkeys(row[0] for row in rows)
        return [_batch_counts(name, [row for row in rows if row[0] == name]) for name in names]

    def left_tasks(self) -> LeftTasks:
        """Queued tasks that workers of this home and version do not take."""
        with self.database.transaction() as run:
            [(elsewhere,)] = run(
                "SELECT COUNT(*) FROM cru_tasks WHERE state = 'queued' AND home NOT IN (:home, '')", home=self.home
            )
            [(newer,)] = run(
                "SELECT COUNT(*) FROM cru_tasks WHERE state = 'queued' AND home IN (:home, '') AND version > :version",
                home=self.home,
                version=VERSION,
            )
        return LeftTasks(elsewhere, newer)

    def waiting(self, batch: str = "") -> int:
        """Tasks that may still have to be taken: those that are queued, and of one batch those that others run, too."""
        states = ("queued", "running") if batch else ("queued", "queued")
        with self.database.transaction() as run:
            [(count,)] = run(
                "SELECT COUNT(*) FROM cru_tasks WHERE home IN (:home, '') AND version <= :version AND state IN (:first, :second) "
                "AND (CAST(:batch AS TEXT) = '' OR batch = :batch)",
                home=self.home, version=VERSION, batch=batch, first=states[0], second=states[1],
            )  # fmt: skip
        return int(count)

    def forget(self, batch: str) -> int:
        """Let go of a batch, unless something of it runs; how many tasks. The contexts stay."""
        with self.database.transaction() as run:
            rows = run(
                "DELETE FROM cru_tasks WHERE batch = :batch AND state <> 'running' AND home IN (:home, '') RETURNING id",
                batch=batch,
                home=self.home,
            )
            for row in rows:
                run("DELETE FROM cru_deaths WHERE batch = :batch AND id = :id", batch=batch, id=row[0])
        return len(rows)


CLAIM = """
UPDATE cru_tasks SET state = 'running', worker = :worker, started_at = {now}
WHERE (batch, id) = (
    SELECT t.batch, t.id FROM cru_tasks t
    WHERE t.state = 'queued' AND (t.home || '') IN (:home, '') AND t.version <= :version AND t.not_before <= {now}
      AND (CAST(:batch AS TEXT) = '' OR t.batch = :batch)
      AND NOT EXISTS (SELECT 1 FROM cru_tasks r WHERE r.state = 'running' AND r.home = t.home AND r.context = t.context)
      AND NOT EXISTS (
        SELECT 1 FROM cru_tasks e WHERE e.state = 'queued' AND e.home = t.home AND e.context = t.context AND e.batch = t.batch
          AND e.version <= :version AND (e.queued_at < t.queued_at OR (e.queued_at = t.queued_at AND e.line < t.line)))
    ORDER BY t.queued_at, t.line LIMIT 1 {skip_locked})
  AND state = 'queued' AND EXISTS (SELECT 1 FROM cru_workers w WHERE w.id = :worker)
RETURNING batch, id, attempt, item, deaths, max_deaths, home
"""
"""`home || ''` has no index: SQLite, too, walks that of queued tasks in their order."""
COUNTS = """
SELECT batch, state, status, COUNT(*), MIN(queued_at) FROM cru_tasks
WHERE CAST(:batch AS TEXT) = '' OR batch = :batch GROUP BY 1, 2, 3 ORDER BY 5, 1
"""


def bury(run: Run, row: Row, worker: str, host: str, why: str) -> None:
    """Count the death of a run (batch, id, deaths, max_deaths, context): queue the task again, or leave it dead with its history."""
    batch, task, deaths, most, context = row
    why = why.replace("\0", "?")  # which no text in Postgres may have
    run(
        "INSERT INTO cru_deaths VALUES (:batch, :id, :worker, :host, {now}, :why)",
        batch=batch,
        id=task,
        worker=worker,
        host=host,
        why=why,
    )
    if deaths + 1 < most:
        run(
            "UPDATE cru_tasks SET state = 'queued', worker = '', deaths = deaths + 1 WHERE batch = :batch AND id = :id",
            batch=batch,
            id=task,
        )
        return
    history = tuple(_deaths(run, batch, task))
    error = f"its run died {len(history)} times: {why}" if len(history) > 1 else f"its run died: {why}"
    result = WorkResult(
        WorkStatus.DEAD, code=1, error=error, context=context, deaths=history, resume=f"cru -C {context} --resume"
    )
    run(
        "UPDATE cru_tasks SET state = 'finished', worker = '', deaths = deaths + 1, ended_at = {now}, status = 'dead', result = :result "
        "WHERE batch = :batch AND id = :id",
        result=_encode(result).decode(),
        batch=batch,
        id=task,
    )


def _deaths(run: Run, batch: str, task: str) -> list[Death]:
    rows = run(
        "SELECT worker, host, at, why FROM cru_deaths WHERE batch = :batch AND id = :id ORDER BY at",
        batch=batch,
        id=task,
    )
    return [Death(worker, host, at / 1000, why) for worker, host, at, why in rows]


def _result(text: str) -> WorkResult | None:
    """Older versions wrote a cost of 0 where it was not known, and did not count requests."""
    if not text:
        return None
    try:
        result = decode_item(text, WorkResult)
    except msgspec.DecodeError as error:
        return WorkResult(WorkStatus.FAILED, code=1, error=f"its result in the queue cannot be read: {error}")
    if result.tokens.requests or result.tokens.cost:
        return result
    tokens = msgspec.structs.replace(result.tokens, cost=None)
    return msgspec.structs.replace(result, tokens=tokens)


def _task_row(row: Row) -> TaskRow:
    task, line, state, item, context, worker, deaths, result = row
    try:
        prompt = decode_item(item, AskedPrompt).prompt
    except msgspec.DecodeError:
        prompt = "(its item in the queue cannot be read)"
    return TaskRow(task, line, TaskState(state), prompt, context, worker, deaths, _result(result))


def _batch_counts(name: str, rows: Sequence[Row]) -> BatchCounts:
    states: dict[TaskState, int] = {}
    statuses: dict[WorkStatus, int] = {}
    for _, state, status, count, _ in rows:
        states[TaskState(state)] = states.get(TaskState(state), 0) + count
        if status:
            statuses[WorkStatus(status)] = statuses.get(WorkStatus(status), 0) + count
    return BatchCounts(name, states, statuses)
