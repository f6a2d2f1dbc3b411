"""The queue: every step is one transaction, and nobody has what another has."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.features.fleet.support import items, queue_at, registered

from cru.features.fleet import FleetError, ItemChanged, QueueTooNew, QueueUnavailable, UnreadableTask
from cru.features.fleet.database import SqliteDatabase, open_database
from cru.features.fleet.queue import CLAIM, WorkQueue
from cru.features.fleet.records import VERSION, BatchItem, QueuedTask, TaskState, WorkResult, WorkStatus

DONE = WorkResult(WorkStatus.DONE, "fine")


def claimed(queue: WorkQueue, worker: str, batch: str = "") -> QueuedTask:
    task = queue.claim(worker, batch)
    assert task is not None
    return task


def test_tasks_are_taken_once_in_their_order_and_finished(tmp_path: Path) -> None:
    first, second = queue_at(tmp_path), queue_at(tmp_path)
    assert first.add("b", items("x", "y", "z"), 5) == 3
    a, b = registered(first, tmp_path), registered(second, tmp_path)
    tasks = [claimed(first, a.id), claimed(second, b.id), claimed(first, a.id)]
    assert [task.id for task in tasks] == ["x", "y", "z"] and first.claim(a.id) is None
    assert first.finish(a.id, tasks[0], DONE) and second.finish(b.id, tasks[1], DONE)
    assert [row.state for row in first.rows("b")] == [TaskState.FINISHED, TaskState.FINISHED, TaskState.RUNNING]


def test_what_is_queued_again_is_there_once_and_keeps_its_result(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    worker = registered(queue, tmp_path)
    queue.finish(worker.id, claimed(queue, worker.id), DONE)
    assert queue.add("b", items("x", "y"), 5) == 1
    [x, y] = queue.rows("b")
    assert x.result is not None and x.result.response == "fine" and y.state is TaskState.QUEUED


def test_another_prompt_under_the_same_id_is_refused_and_nothing_is_queued(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    changed = [(3, items("y")[0][1]), (7, BatchItem("other", id="x", context="c-x", cwd="/"))]
    with pytest.raises(ItemChanged, match="line 7: item x has another prompt"):
        queue.add("b", changed, 5)
    assert [row.id for row in queue.rows("b")] == ["x"]


def test_many_workers_that_claim_at_once_never_get_the_same_task(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    names = [f"t{number}" for number in range(60)]
    queue.add("b", items(*names), 5)
    worker = registered(queue, tmp_path)

    def take_all(own: WorkQueue) -> list[str]:
        taken: list[str] = []
        while (task := own.claim(worker.id)) is not None:
            taken.append(task.id)
        return taken

    queues = [queue_at(tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        taken = [name for part in pool.map(take_all, queues) for name in part]
    assert sorted(taken) == sorted(names)


def test_a_claim_walks_to_the_first_task_and_sorts_no_queue(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items(*(f"t{number}" for number in range(500))), 5)
    explain = "EXPLAIN QUERY PLAN " if isinstance(queue.database, SqliteDatabase) else "EXPLAIN "
    with queue.database.transaction() as run:
        rows = run(explain + CLAIM, worker="w", batch="", version=VERSION, home="home")
    plan = " ".join(str(row[-1]) for row in rows)
    assert "cru_tasks_queued" in plan and "Sort" not in plan and "TEMP B-TREE" not in plan, plan


def test_a_worker_that_nobody_knows_any_more_gets_nothing(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    assert queue.claim("a stranger") is None
    worker = registered(queue, tmp_path)
    worker.leave()
    assert queue.claim(worker.id) is None


def test_what_another_worker_has_cannot_be_finished(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    a, b = registered(queue, tmp_path), registered(queue, tmp_path)
    task = claimed(queue, a.id)
    assert not queue.finish(b.id, task, DONE)
    queue.hand_back(b.id, task)
    assert [row.worker for row in queue.rows("b")] == [a.id]


def test_a_context_runs_one_task_at_a_time_in_the_order_of_the_file(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x", "y", context="shared"), 5)
    worker = registered(queue, tmp_path)
    x = claimed(queue, worker.id)
    assert x.id == "x" and queue.claim(worker.id) is None
    queue.finish(worker.id, x, DONE)
    assert claimed(queue, worker.id).id == "y"


def test_what_was_put_off_goes_before_what_follows_it_in_its_context(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x", "y", context="shared"), 5)
    queue.add("other", items("z", context="shared"), 5)
    worker = registered(queue, tmp_path)
    queue.hand_back(worker.id, claimed(queue, worker.id), 3600)
    assert queue.claim(worker.id, "b") is None  # y comes after x
    assert claimed(queue, worker.id, "other").id == "z"  # another batch knows nothing of that


def test_a_claim_whose_answer_was_lost_is_handed_back(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x", "y"), 5)
    worker = registered(queue, tmp_path)
    known, _lost = claimed(queue, worker.id), claimed(queue, worker.id)
    assert queue.hand_back_all_but(worker.id, [known]) == 1
    assert claimed(queue, worker.id).id == "y"


def test_a_result_whose_answer_was_lost_can_be_written_again(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    worker = registered(queue, tmp_path)
    task = claimed(queue, worker.id)
    assert queue.finish(worker.id, task, DONE) and queue.finish(worker.id, task, DONE)


def test_another_prompt_under_a_forgotten_id_has_another_key(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    worker = registered(queue, tmp_path)
    keys: list[str] = []
    for prompt in ("one", "two", "one"):
        queue.add("b", [(1, BatchItem(prompt, id="x", context="c", cwd="/"))], 5)
        task = claimed(queue, worker.id)
        queue.finish(worker.id, task, DONE)
        queue.forget("b")
        keys.append(task.key)
    assert keys[0] == keys[2] != keys[1]


def test_no_word_of_a_dying_run_upsets_the_queue(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 1)
    worker = registered(queue, tmp_path)
    queue.count_death(worker.id, "host", claimed(queue, worker.id), "ended by SIGSEGV (\0\x1b)")
    [row] = queue.rows("b")
    assert row.result is not None and row.result.deaths[0].why == "ended by SIGSEGV (?\x1b)"


def test_an_item_of_a_newer_cru_is_shown_though_nobody_here_takes_it(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    with queue.database.transaction() as run:
        run("UPDATE cru_tasks SET version = 99, item = :item", item='{"prompt": "p", "colour": "of a later version"}')
    [row] = queue.rows("b")
    assert (row.prompt, row.state) == ("p", TaskState.QUEUED) and queue.finished_since("b", set()) == []


def test_a_task_that_was_put_off_is_not_taken_before_its_time(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    worker = registered(queue, tmp_path)
    queue.hand_back(worker.id, claimed(queue, worker.id), 3600)
    assert queue.claim(worker.id) is None and queue.waiting() == 1


def test_deaths_are_counted_and_the_last_one_leaves_the_task_with_its_history(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 3)
    worker = registered(queue, tmp_path)
    for number in range(3):
        task = claimed(queue, worker.id)
        assert task.deaths == number
        queue.count_death(worker.id, "host", task, f"it was ended by SIG{number}")
    assert queue.claim(worker.id) is None
    [row] = queue.rows("b")
    assert row.result is not None and row.result.status is WorkStatus.DEAD
    assert [death.why for death in row.result.deaths] == [f"it was ended by SIG{n}" for n in range(3)]
    assert {death.host for death in row.result.deaths} == {"host"}


def test_a_retry_asks_only_what_went_wrong_and_a_denied_prompt_anew(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("good", "failed", "denied"), 5)
    worker = registered(queue, tmp_path)
    for status in (WorkStatus.DONE, WorkStatus.FAILED, WorkStatus.DENIED):
        queue.finish(worker.id, claimed(queue, worker.id), WorkResult(status))
    assert queue.retry("b", ("good", "failed", "denied", "unknown"), 5) == 2
    failed, denied = (claimed(queue, worker.id).key for _ in range(2))
    assert failed.startswith("b/failed:") and failed.count("/") == 1
    assert denied.startswith("b/denied:") and denied.endswith("/2")


def test_tasks_of_another_home_or_a_newer_cru_are_left_alone_and_counted(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue_at(tmp_path, "elsewhere").add("a", items("x"), 5)
    queue.add("b", items("y"), 5)
    with queue.database.transaction() as run:
        run("UPDATE cru_tasks SET version = 99 WHERE id = 'y'")
    assert queue.claim(registered(queue, tmp_path).id) is None
    left = queue.left_tasks()
    assert (left.elsewhere, left.newer) == (1, 1)


def test_a_queue_of_a_newer_cru_is_not_touched(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    with queue.database.transaction() as run:
        run("UPDATE cru_queue SET value = '2' WHERE name = 'version'")
    with pytest.raises(QueueTooNew, match="made by a newer cru"):
        queue_at(tmp_path)


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    with pytest.raises(ZeroDivisionError), queue.database.transaction() as run:
        run("INSERT INTO cru_queue VALUES ('a', 'b')")
        _ = 1 / 0
    with queue.database.transaction() as run:
        assert run("SELECT COUNT(*) FROM cru_queue") == [(1,)]


def test_a_file_that_is_no_database_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "queue.sqlite").write_bytes(b"no database at all, and long enough to look at" * 100)
    with pytest.raises(QueueUnavailable, match=r"queue\.sqlite cannot be used"):
        queue_at(tmp_path)


def test_nobody_else_may_read_what_is_queued(tmp_path: Path) -> None:
    queue_at(tmp_path / "fleet").add("b", items("x"), 5)
    files = [tmp_path / "fleet", *(tmp_path / "fleet").iterdir()]
    assert [oct(path.stat().st_mode & 0o077) for path in files] == ["0o0"] * len(files)


def test_the_counts_of_batches(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("a", items("x", "y"), 5)
    queue.add("b", items("x"), 5)
    worker = registered(queue, tmp_path)
    queue.finish(worker.id, claimed(queue, worker.id, "b"), DONE)
    counts = {batch.name: (dict(batch.states), dict(batch.statuses)) for batch in queue.counts()}
    assert counts == {"a": ({TaskState.QUEUED: 2}, {}), "b": ({TaskState.FINISHED: 1}, {WorkStatus.DONE: 1})}
    assert queue.forget("b") == 1 and [batch.name for batch in queue.counts()] == ["a"]


def test_without_the_library_a_url_of_postgres_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(FleetError, match="needs a library") as raised:
        open_database("postgresql://here/x", Path("/"))
    assert raised.value.hint == "pip install 'cru[fleet]'"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@host:1/x?sslmode=require", "postgresql://host:1/x"),
        ("postgresql://u:sec?ret@host/x", "postgresql://…"),
        ("postgresql://host/x?password=sec@ret", "postgresql://…"),
        ("postgresql://u:sec@ret@host/x", "postgresql://host/x"),
        ("postgresql://host/x?password=secret", "postgresql://host/x"),
    ],
)
def test_the_place_of_a_queue_has_no_password(url: str, shown: str) -> None:
    assert open_database(url, Path("/")).place == shown


def test_a_url_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(FleetError, match="CRU_DATABASE_URL cannot be read") as raised:
        WorkQueue(open_database("postgresql://u:sec%zzret@host/x", Path("/")), "home").open()
    assert "sec" not in str(raised.value.message) + raised.value.hint and raised.value.__suppress_context__


def test_a_url_that_is_no_database_is_refused() -> None:
    with pytest.raises(FleetError, match="there is no database `mysql`"):
        open_database("mysql://here", Path("/"))


BROKEN_ITEMS: dict[str, object] = {
    "no JSON": "{",
    "another kind": "[]",
    "an unknown key": '{"prompt": "x", "other": 1}',
    "no prompt": "{}",
    "too deep": '{"prompt": "x", "set": ' + '{"a": ' * 2_000,
    "no UTF-8": b'{"prompt": "\xff"}',
    "a number": 7,
    "empty": "",
}
"""What a program that is not cru, or a damaged disk, may have put in place of an item."""


@pytest.mark.parametrize("name", BROKEN_ITEMS)
def test_an_item_that_cannot_be_read_fails_alone(tmp_path: Path, name: str) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x", "y"), 5)
    value = BROKEN_ITEMS[name]
    column = "CAST(:value AS TEXT)" if isinstance(value, bytes) else ":value"
    with queue.database.transaction() as run:
        run(f"UPDATE cru_tasks SET item = {column} WHERE id = 'x'", value=value)
        before = run("SELECT item FROM cru_tasks WHERE id = 'x'")
    worker = registered(queue, tmp_path)
    assert [item.id for _, item in queue.items("b")] == ["y"]
    with pytest.raises(UnreadableTask, match="b/x failed: its item in the queue cannot be read: "):
        queue.claim(worker.id)
    assert claimed(queue, worker.id).id == "y" and queue.claim(worker.id) is None
    with queue.database.transaction() as run:
        assert run("SELECT item FROM cru_tasks WHERE id = 'x'") == before  # the row is kept
    [x, y] = queue.rows("b")
    assert (x.state, x.result and x.result.status) == (TaskState.FINISHED, WorkStatus.FAILED)
    # what a newer cru asks can be shown, though it cannot be run
    assert x.prompt == ("x" if name == "an unknown key" else "(its item in the queue cannot be read)")
    assert (y.state, y.prompt) == (TaskState.RUNNING, "prompt of y")
    with pytest.raises(
        ItemChanged, match=r"item x (is in the queue already, and cannot be read there|has another prompt)"
    ):
        queue.add("b", items("x"), 5)


@pytest.mark.parametrize("text", ["{", '{"status": "odd"}', '{"status": "done", "response": ' + "[" * 2_000])
def test_a_result_that_cannot_be_read_hides_no_other(tmp_path: Path, text: str) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x", "y"), 5)
    with queue.database.transaction() as run:
        run("UPDATE cru_tasks SET state = 'finished', result = :text WHERE id = 'x'", text=text)
    [x, y] = queue.rows("b")
    assert x.result is not None and "its result in the queue cannot be read" in x.result.error
    assert y.result is None and [row.id for row in queue.finished_since("b", set())] == ["x"]
    assert queue.retry("b", ["x"], 5) == 1
