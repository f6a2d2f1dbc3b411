"""The queue: every step is one transaction, and nobody has what another has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from tests.features.fleet.support import batch_of, fetched, items, joined, late, queue_at, write_item

from cru.features.fleet import ItemChanged, UnreadableTask, WorkerReplaced
from cru.features.fleet.queue import WorkerInfo, WorkQueue
from cru.features.fleet.queued_batch import MANY, queued_batches
from cru.features.fleet.records import BatchItem, QueuedTask, TaskState, WorkResult, WorkStatus

DONE = WorkResult(WorkStatus.DONE, "fine")
INFO = WorkerInfo("w", "host", 1, 5.0)


def claimed(queue: WorkQueue, worker: int) -> QueuedTask:
    task = fetched(queue, worker)
    assert task is not None
    return task


def test_tasks_are_taken_once_in_their_order_and_finished(url: str) -> None:
    first, second = queue_at(url), queue_at(url)
    assert batch_of(first).add(items("x", "y", "z"), 5, False) == 3
    a, b = joined(first, "a"), joined(second, "b")
    tasks = [claimed(first, a), claimed(second, b), claimed(first, a)]
    assert [task.id for task in tasks] == ["x", "y", "z"] and fetched(first, a) is None
    assert first.finish(a, tasks[0], DONE) and second.finish(b, tasks[1], DONE)
    assert [row.state for row in batch_of(first, "b").rows()] == [
        TaskState.FINISHED,
        TaskState.FINISHED,
        TaskState.RUNNING,
    ]


def test_what_is_queued_again_is_there_once_and_keeps_its_result(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 5, False)
    worker = joined(queue)
    queue.finish(worker, claimed(queue, worker), DONE)
    assert batch_of(queue, "b").add(items("x", "y"), 5, False) == 1
    [x, y] = batch_of(queue, "b").rows()
    assert x.result is not None and x.result.response == "fine" and y.state is TaskState.QUEUED


def test_another_prompt_under_the_same_id_is_refused_and_nothing_is_queued(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 5, False)
    changed = [(3, items("y")[0][1]), (7, BatchItem("other", id="x", context="c-x", cwd="/"))]
    with pytest.raises(ItemChanged, match="line 7: item x has another prompt"):
        batch_of(queue, "b").add(changed, 5, False)
    assert [row.id for row in batch_of(queue, "b").rows()] == ["x"]


def test_the_database_knows_of_many_jobs_at_once(url: str) -> None:
    """Else each fetch takes seconds until it counts them by itself (10,000 jobs: 3 s each in place of 1 ms)."""
    queue = queue_at(url)
    batch_of(queue).add(items(*(f"i{n}" for n in range(MANY))), 5, False)
    with queue.database.transaction() as run:
        assert run("SELECT reltuples FROM pg_class WHERE relname = 'procrastinate_jobs'") == [(MANY,)]


def test_an_item_that_gets_an_agent_is_none_for_an_older_worker(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("x"), 5, False)
    batch_of(queue).add([(line, replace(item, agent="general")) for line, item in items("x")], 5, False)
    assert claimed(queue, joined(queue)).version == 2


def test_many_workers_that_claim_at_once_never_get_the_same_task(url: str) -> None:
    queue = queue_at(url)
    names = [f"t{number}" for number in range(60)]
    batch_of(queue, "b").add(items(*names), 5, False)
    worker = joined(queue)

    def take_all(own: WorkQueue) -> list[str]:
        taken: list[str] = []
        while (task := fetched(own, worker)) is not None:
            taken.append(task.id)
        return taken

    queues = [queue_at(url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        taken = [name for part in pool.map(take_all, queues) for name in part]
    assert sorted(taken) == sorted(names)


def test_what_another_worker_has_cannot_be_finished(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 5, False)
    a, b = joined(queue, "a"), joined(queue, "b")
    task = claimed(queue, a)
    assert not queue.finish(b, task, DONE)
    queue.hand_back(b, task)
    assert [row.worker for row in batch_of(queue, "b").rows()] == ["a"]


def test_a_context_runs_one_task_at_a_time_in_the_order_of_the_file(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x", "y", context="shared"), 5, False)
    worker = joined(queue)
    x = claimed(queue, worker)
    assert x.id == "x" and fetched(queue, worker) is None
    queue.finish(worker, x, DONE)
    assert claimed(queue, worker).id == "y"


def test_what_was_put_off_goes_before_what_follows_it_in_its_context(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x", "y", context="shared"), 5, False)
    batch_of(queue, "other").add(items("z", context="shared"), 5, False)
    worker = joined(queue)
    queue.hand_back(worker, claimed(queue, worker), 3600)
    assert fetched(queue, worker) is None  # y comes after x, and so does what another batch asks of that conversation


def test_a_claim_whose_answer_was_lost_is_handed_back(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x", "y"), 5, False)
    worker = joined(queue)
    known, _lost = claimed(queue, worker), claimed(queue, worker)
    queue.hand_back_all_but(worker, [known.job])
    assert claimed(queue, worker).id == "y"


def test_a_result_whose_answer_was_lost_can_be_written_again(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 5, False)
    worker = joined(queue)
    task = claimed(queue, worker)
    assert queue.finish(worker, task, DONE) and queue.finish(worker, task, DONE)


def test_another_prompt_under_a_forgotten_id_has_another_key(url: str) -> None:
    queue = queue_at(url)
    worker = joined(queue)
    keys: list[str] = []
    for prompt in ("one", "two", "one"):
        batch_of(queue, "b").add([(1, BatchItem(prompt, id="x", context="c", cwd="/"))], 5, False)
        task = claimed(queue, worker)
        queue.finish(worker, task, DONE)
        batch_of(queue).forget()
        keys.append(task.key)
    assert keys[0] == keys[2] != keys[1]


def test_no_word_of_a_dying_run_upsets_the_queue(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 1, False)
    worker = joined(queue)
    queue.count_death(worker, INFO, claimed(queue, worker), "ended by SIGSEGV (\0\x1b)")
    [row] = batch_of(queue, "b").rows()
    assert row.result is not None and row.result.deaths[0].why == "ended by SIGSEGV (\0\x1b)"


def test_an_item_of_a_newer_cru_is_shown_though_nobody_here_takes_it(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 5, False)
    write_item(queue, "x", {"prompt": "p", "colour": "of a later version"}, version=99)
    [row] = batch_of(queue, "b").rows()
    assert (row.prompt, row.state) == ("p", TaskState.QUEUED) and batch_of(queue).finished_since(set()) == []


def test_a_task_that_was_put_off_is_not_taken_before_its_time(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 5, False)
    worker = joined(queue)
    queue.hand_back(worker, claimed(queue, worker), 3600)
    assert fetched(queue, worker) is None and queue.has_work()


def test_deaths_are_counted_and_the_last_one_leaves_the_task_with_its_history(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 3, False)
    worker = joined(queue)
    for number in range(3):
        task = claimed(queue, worker)
        assert task.deaths == number
        queue.count_death(worker, INFO, task, f"it was ended by SIG{number}")
    assert fetched(queue, worker) is None
    [row] = batch_of(queue, "b").rows()
    assert row.result is not None and row.result.status is WorkStatus.DEAD
    assert [death.why for death in row.result.deaths] == [f"it was ended by SIG{n}" for n in range(3)]
    assert {death.host for death in row.result.deaths} == {"host"}


def test_a_retry_asks_only_what_went_wrong_and_a_denied_prompt_anew(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("good", "failed", "denied"), 5, False)
    worker = joined(queue)
    for status in (WorkStatus.DONE, WorkStatus.FAILED, WorkStatus.DENIED):
        queue.finish(worker, claimed(queue, worker), WorkResult(status))
    assert batch_of(queue, "b").retry(("good", "failed", "denied", "unknown"), 5) == 2
    failed, denied = (claimed(queue, worker).key for _ in range(2))
    assert failed.startswith("b/failed:") and failed.count("/") == 1
    assert denied.startswith("b/denied:") and denied.endswith("/2")


def test_tasks_of_another_home_or_a_newer_cru_are_left_alone_and_counted(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue_at(url, "elsewhere"), "a").add(items("x"), 5, False)
    batch_of(queue, "b").add(items("y"), 5, False)
    write_item(queue, "y", {"prompt": "p"}, version=99)
    left = queue.left_tasks()
    assert (left.elsewhere, left.newer) == (1, 1)
    assert claimed(queue, joined(queue)).version == 99 and not queue.has_work()


def test_the_counts_of_batches(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x"), 5, False)
    worker = joined(queue)
    batch_of(queue, "a").add(items("x", "y"), 5, False)
    queue.finish(worker, claimed(queue, worker), DONE)
    counts = {batch.name: (dict(batch.states), dict(batch.statuses)) for batch in queued_batches(queue)}
    assert counts == {"a": ({TaskState.QUEUED: 2}, {}), "b": ({TaskState.FINISHED: 1}, {WorkStatus.DONE: 1})}
    assert batch_of(queue).forget() == 1 and [batch.name for batch in queued_batches(queue)] == ["a"]


BROKEN_ITEMS: dict[str, str] = {
    "no JSON": "{",
    "another kind": "[]",
    "an unknown key": '{"prompt": "x", "other": 1}',
    "no prompt": "{}",
    "too deep": '{"prompt": "x", "set": ' + '{"a": ' * 2_000,
    "a number": "7",
    "empty": "",
}
"""What a program that is not cru, or a damaged disk, may have put in place of an item."""


@pytest.mark.parametrize("name", BROKEN_ITEMS)
def test_an_item_that_cannot_be_read_fails_alone(url: str, name: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x", "y"), 5, False)
    write_item(queue, "x", BROKEN_ITEMS[name])
    worker = joined(queue)
    assert [item.id for _, item in batch_of(queue).items()] == ["y"]
    with pytest.raises(UnreadableTask, match="b/x failed: its item in the queue cannot be read: ") as caught:
        fetched(queue, worker)
    queue.finish(worker, caught.value.task, WorkResult(WorkStatus.FAILED))
    assert claimed(queue, worker).id == "y" and fetched(queue, worker) is None
    [x, y] = batch_of(queue, "b").rows()
    assert (x.state, x.result and x.result.status) == (TaskState.FINISHED, WorkStatus.FAILED)
    # what a newer cru asks can be shown, though it cannot be run
    assert x.prompt == ("x" if name == "an unknown key" else "(its item in the queue cannot be read)")
    assert (y.state, y.prompt) == (TaskState.RUNNING, "prompt of y")
    with pytest.raises(
        ItemChanged, match=r"item x (is in the queue already, and cannot be read there|has another prompt)"
    ):
        batch_of(queue, "b").add(items("x"), 5, False)


@pytest.mark.parametrize("text", ["{", '{"status": "odd"}', '{"status": "done", "response": ' + "[" * 2_000])
def test_a_result_that_cannot_be_read_hides_no_other(url: str, text: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "b").add(items("x", "y"), 5, False)
    with queue.database.transaction() as run:
        run("UPDATE cru_items SET status = 'failed', result = %(text)s WHERE id = 'x'", text=text)
    [x, y] = batch_of(queue, "b").rows()
    assert x.result is not None and "its result in the queue cannot be read" in x.result.error
    assert y.result is None and [row.id for row in batch_of(queue).finished_since(set())] == ["x"]
    assert batch_of(queue, "b").retry(["x"], 5) == 1


@pytest.mark.parametrize("state", ["queued", "running", "finished"])
def test_what_is_not_finished_can_be_cancelled_and_asked_again(url: str, state: str) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("x"), 5, False)
    worker = joined(queue)
    task = claimed(queue, worker) if state != "queued" else None
    if task is not None and state == "finished":
        queue.finish(worker, task, DONE)
    assert batch_of(queue).cancel(["x", "unknown"]) == (state != "finished")
    if task is not None and state == "running":  # its worker ends the run, or dies
        queue.hand_back(worker, task)
    [row] = batch_of(queue).rows()
    assert row.result is not None
    assert row.result.status is (WorkStatus.DONE if state == "finished" else WorkStatus.CANCELLED)
    assert batch_of(queue).retry(["x"], 5) == (state != "finished")


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ("UPDATE procrastinate_jobs SET status = 'cancelled'", "cancelled"),
        ("UPDATE procrastinate_jobs SET status = 'failed'", "failed"),
        ("DELETE FROM procrastinate_jobs", "deleted"),
    ],
)
def test_a_job_that_another_program_ends_is_shown_and_can_be_asked_again(url: str, change: str, how: str) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("x", "y"), 5, False)
    with queue.database.transaction() as run:
        run(f"{change} WHERE id = (SELECT job FROM cru_items WHERE id = 'x')")
    [row] = batch_of(queue).finished_since(set())
    assert row.result is not None and row.result.error == f"its job was ended by another program: {how}"
    [counts] = queued_batches(queue)
    assert dict(counts.statuses) == {WorkStatus.FAILED: 1}
    assert batch_of(queue).retry(["x", "y"], 5) == 1 and batch_of(queue).finished_since(set()) == []
    with queue.database.transaction() as run:
        run(change)
    assert batch_of(queue).forget() == 2 and batch_of(queue).rows() == []


def test_a_higher_priority_goes_first(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue, "a").add(items("x"), 5, False)
    batch_of(queue, "b").add(items("y"), 5, False, priority=1)
    worker = joined(queue)
    assert [claimed(queue, worker).id for _ in range(2)] == ["y", "x"]


# workers --------------------------------------------------------------------------------------------------------------------------------


def test_who_beats_is_left_alone_and_who_does_not_is_taken_over_once(url: str) -> None:
    queue, other = queue_at(url), queue_at(url)
    batch_of(queue).add(items("x"), 5, False)
    dead, a, b = joined(queue, "dead"), joined(queue, "a"), joined(queue, "b")
    task = claimed(queue, dead)
    assert queue.take_over(a) == []
    late(queue, dead)
    [seen] = queue.take_over(a)
    assert (seen.name, seen.count, seen.why) == ("dead", 1, "the worker missed 4 beats") and other.take_over(b) == []
    [row] = batch_of(queue).rows()
    assert (row.state, row.deaths) == (TaskState.QUEUED, 1)
    with pytest.raises(WorkerReplaced, match="took this worker for dead"):
        queue.beat(dead)
    assert queue.finish(dead, task, DONE) is None and claimed(queue, a).deaths == 1


def test_a_beat_before_the_judgement_saves_a_worker(url: str) -> None:
    queue = queue_at(url)
    late_one, judge = joined(queue, "late"), joined(queue, "judge")
    late(queue, late_one)
    queue.beat(late_one)
    assert queue.take_over(judge) == []


def test_who_leaves_hands_back_what_it_had_and_no_death_is_counted(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("x"), 5, False)
    worker = joined(queue)
    claimed(queue, worker)
    queue.leave(worker)
    assert [(row.state, row.deaths) for row in batch_of(queue).rows()] == [(TaskState.QUEUED, 0)]
    with queue.database.transaction() as run:
        assert run("SELECT COUNT(*) FROM cru_fleet_workers") == [(0,)]
