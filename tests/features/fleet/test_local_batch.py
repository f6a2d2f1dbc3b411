"""The journal of a batch on this machine: what is known after every kind of line, kill and damage."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.features.fleet.support import items
from tests.kit.closing import closed_later

from cru.features.fleet import ItemChanged
from cru.features.fleet.local_batch import KILLED, LocalBatch, local_batches
from cru.features.fleet.records import BatchItem, TaskState, WorkResult, WorkStatus

DONE, DENIED, FAILED = (WorkResult(status) for status in (WorkStatus.DONE, WorkStatus.DENIED, WorkStatus.FAILED))
Change = Callable[[LocalBatch], object]


def held(folder: Path, name: str = "b") -> LocalBatch:
    batch = closed_later(LocalBatch(folder, name))
    batch.hold(lambda: pytest.fail("nothing else holds it"))
    return batch


def begin(batch: LocalBatch) -> None:
    batch.begin("x")


def hand_back(batch: LocalBatch) -> None:
    batch.begin("x")
    batch.hand_back("x")


def die(batch: LocalBatch) -> None:
    batch.begin("x")
    batch.count_death("x", "SIGKILL")


def die_twice(batch: LocalBatch) -> None:
    die(batch)
    die(batch)


def finish(result: WorkResult) -> Change:
    def change(batch: LocalBatch) -> None:
        batch.begin("x")
        batch.finish("x", result)

    return change


def retry(result: WorkResult) -> Change:
    def change(batch: LocalBatch) -> None:
        finish(result)(batch)
        batch.retry(["x"], 2)

    return change


@pytest.mark.parametrize(
    ("change", "state", "deaths", "key_end", "status"),
    [
        (lambda batch: None, TaskState.QUEUED, 0, "", None),
        (begin, TaskState.RUNNING, 0, "", None),
        (hand_back, TaskState.QUEUED, 0, "", None),
        (die, TaskState.QUEUED, 1, "", None),
        (die_twice, TaskState.FINISHED, 2, "", WorkStatus.DEAD),
        (finish(DONE), TaskState.FINISHED, 0, "", WorkStatus.DONE),
        (retry(DONE), TaskState.FINISHED, 0, "", WorkStatus.DONE),
        (retry(FAILED), TaskState.QUEUED, 0, "", None),
        (retry(DENIED), TaskState.QUEUED, 0, "/2", None),
    ],
    ids=["new", "begun", "handed back", "died", "dead", "done", "done stays", "failed again", "denied anew"],
)
def test_what_a_later_run_reads_is_what_this_one_knows(
    tmp_path: Path, change: Change, state: TaskState, deaths: int, key_end: str, status: WorkStatus | None
) -> None:
    batch = held(tmp_path)
    assert batch.add(items("x"), 2) == 1
    key = batch.task("x").key
    change(batch)
    for known in (batch, LocalBatch(tmp_path, "b")):
        [row] = known.rows()
        assert (row.state, row.deaths, known.task("x").key) == (state, deaths, key + key_end)
        assert (row.result.status if row.result is not None else None) is status


def test_an_item_that_ran_when_its_run_was_killed_counts_a_death(tmp_path: Path) -> None:
    batch = held(tmp_path)
    batch.add(items("x", "y"), 2)
    batch.begin("x")
    batch.close()
    again = held(tmp_path)
    assert [(row.state, row.deaths) for row in again.rows()] == [(TaskState.QUEUED, 1), (TaskState.QUEUED, 0)]
    again.begin("x")
    again.close()
    [dead, _] = held(tmp_path).rows()
    assert dead.result is not None and dead.result.error == f"its run died 2 times: {KILLED}"


@pytest.mark.parametrize("damage", [b'{"id": "y", "res', b"\xff\xfe\n", b'{"id": "y", "later": 1}\n', b"[]\n\n"])
def test_a_line_that_cannot_be_read_costs_nothing_else(tmp_path: Path, damage: bytes) -> None:
    batch = held(tmp_path)
    batch.add(items("x", "y"), 2)
    batch.finish("x", DONE)
    batch.close()
    with batch.path.open("ab") as file:
        file.write(damage)
    again = held(tmp_path)
    again.finish("y", DONE)
    assert [row.state for row in LocalBatch(tmp_path, "b").rows()] == [TaskState.FINISHED] * 2


@pytest.mark.parametrize("other", [{"prompt": "else"}, {"context": "else"}, {"attach": ("else",)}])
def test_an_id_that_asks_something_else_is_refused_and_nothing_is_added(
    tmp_path: Path, other: dict[str, object]
) -> None:
    batch = held(tmp_path)
    batch.add(items("x"), 2)
    changed = BatchItem(**{"prompt": "prompt of x", "id": "x", "context": "c-x", **other})  # type: ignore[arg-type]
    with pytest.raises(ItemChanged, match="line 9: item x has another"):
        batch.add([*items("new"), (9, changed)], 2)
    assert [row.id for row in LocalBatch(tmp_path, "b").rows()] == ["x"]


def test_an_item_gets_other_limits_and_another_line_while_it_is_not_finished(tmp_path: Path) -> None:
    batch = held(tmp_path)
    batch.add(items("x"), 2)
    [(_, item)] = items("x")
    slower = BatchItem(item.prompt, id="x", context=item.context, cwd="/", seconds=9)
    assert batch.add([(7, slower)], 3) == 0
    assert LocalBatch(tmp_path, "b").items() == [(7, slower)]


def test_of_two_runs_the_second_waits_and_sees_what_the_first_did(tmp_path: Path) -> None:
    batch = held(tmp_path)
    batch.add(items("x"), 2)
    seen: queue.Queue[str] = queue.Queue()

    def hold() -> None:
        other = closed_later(LocalBatch(tmp_path, "b"))
        other.hold(lambda: seen.put("waits"))
        seen.put(other.rows()[0].state.value)

    thread = threading.Thread(target=hold)
    thread.start()
    assert seen.get(timeout=60) == "waits"
    batch.finish("x", DONE)
    batch.close()
    assert seen.get(timeout=60) == "finished"
    thread.join(60)


def test_what_is_forgotten_is_gone_and_what_waited_for_it_begins_anew(tmp_path: Path) -> None:
    batch = held(tmp_path)
    batch.add(items("x", "y"), 2)
    assert batch.forget() == 2 and local_batches(tmp_path) == []
    other = closed_later(LocalBatch(tmp_path, "b"))
    other.hold(lambda: pytest.fail("the journal that is locked is another one"))
    assert other.rows() == []


def test_batches_are_counted_by_state_and_end(tmp_path: Path) -> None:
    batch = held(tmp_path)
    batch.add(items("x", "y", "z"), 2)
    batch.finish("x", DONE)
    batch.begin("y")
    [counts] = local_batches(tmp_path)
    assert counts.name == "b" and counts.statuses == {WorkStatus.DONE: 1}
    assert counts.states == dict.fromkeys((TaskState.FINISHED, TaskState.RUNNING, TaskState.QUEUED), 1)
