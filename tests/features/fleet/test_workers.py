"""Who is dead: by the lock on its file, or by its beats; judged by the database's clock, and only by who is on time himself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.features.fleet.support import items, queue_at, registered

from cru.features.fleet import HomeCopied, WorkerReplaced
from cru.features.fleet.queue import WorkQueue
from cru.features.fleet.records import TaskState
from cru.features.fleet.workers import WorkerRegistry, home_id


def late(queue: WorkQueue, worker: WorkerRegistry, home: str = "home") -> None:
    """As if its last beat were an hour ago."""
    with queue.database.transaction() as run:
        run("UPDATE cru_workers SET beat = beat - 3600000, home = :home WHERE id = :id", id=worker.id, home=home)


def steady(worker: WorkerRegistry) -> WorkerRegistry:
    """As if it had beaten on time for an hour."""
    worker._steady_since -= 3600
    return worker


def test_who_lives_is_left_alone(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    registered(queue, tmp_path)
    assert registered(queue, tmp_path).find_dead() == []


def test_a_worker_of_this_home_is_dead_as_soon_as_its_lock_is_free(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    killed, worker = registered(queue, tmp_path), registered(queue, tmp_path)
    assert queue.claim(killed.id) is not None
    killed.close()
    [dead] = worker.find_dead()
    assert (dead.id, dead.why) == (killed.id, "the worker was killed")
    assert worker.take_over(dead) == 1
    [row] = queue.rows("b")
    assert (row.state, row.deaths) == (TaskState.QUEUED, 1)
    assert worker.find_dead() == [] and sorted(p.name for p in (tmp_path / "workers").iterdir()) == [worker.id]


def test_a_worker_of_another_machine_is_dead_when_it_misses_beats(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    other, worker = registered(queue, tmp_path), registered(queue, tmp_path)
    late(queue, other, "home of another machine")
    assert worker.find_dead() == []  # who has only just come judges nobody
    [dead] = steady(worker).find_dead()
    assert (dead.id, dead.why) == (other.id, "the worker missed 4 beats")


def test_the_clock_of_this_machine_judges_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = queue_at(tmp_path)
    other, worker = registered(queue, tmp_path), steady(registered(queue, tmp_path))
    with queue.database.transaction() as run:
        run("UPDATE cru_workers SET home = 'elsewhere' WHERE id = :id", id=other.id)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert worker.find_dead() == []
    worker.beat()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert worker.find_dead() == [] and other.find_dead() == []


def test_who_was_stopped_himself_judges_nobody(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    other, worker = registered(queue, tmp_path), steady(registered(queue, tmp_path))
    late(queue, other, "elsewhere")
    worker._last_beat -= 3600
    worker.beat()
    assert worker.find_dead() == []


def test_of_two_that_see_the_same_death_only_the_first_counts_it(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    killed, a, b = (registered(queue, tmp_path) for _ in range(3))
    queue.claim(killed.id)
    killed.close()
    [seen_by_a], [seen_by_b] = a.find_dead(), b.find_dead()
    assert (a.take_over(seen_by_a), b.take_over(seen_by_b)) == (1, 0)
    assert [row.deaths for row in queue.rows("b")] == [1]


def test_a_sign_of_life_between_look_and_judgement_saves_it(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    other, worker = registered(queue, tmp_path), steady(registered(queue, tmp_path))
    queue.claim(other.id)
    late(queue, other)
    [dead] = worker.find_dead()
    other.beat()
    assert worker.take_over(dead) == 0
    assert [row.worker for row in queue.rows("b")] == [other.id]


def test_who_was_taken_for_dead_hears_of_it(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    other, worker = registered(queue, tmp_path), steady(registered(queue, tmp_path))
    late(queue, other)
    worker.take_over(worker.find_dead()[0])
    with pytest.raises(WorkerReplaced, match="took this worker for dead"):
        other.beat()


def test_who_leaves_hands_back_what_it_had(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    queue.add("b", items("x"), 5)
    worker = registered(queue, tmp_path)
    queue.claim(worker.id)
    worker.leave()
    assert [(row.state, row.deaths) for row in queue.rows("b")] == [(TaskState.QUEUED, 0)]
    assert list((tmp_path / "workers").iterdir()) == []


def test_a_copied_home_is_told_while_the_other_one_works(tmp_path: Path) -> None:
    queue = queue_at(tmp_path)
    registered(queue, tmp_path)
    copy = WorkerRegistry(queue, tmp_path / "copy" / "workers", 5)
    with pytest.raises(HomeCopied, match="has the id of this home"):
        copy.join()
    copy.close()
    with queue.database.transaction() as run:
        assert run("SELECT COUNT(*) FROM cru_workers") == [(1,)]


def test_a_worker_whose_file_is_gone_because_it_leaves_is_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = queue_at(tmp_path)
    leaving = registered(queue, tmp_path)
    (tmp_path / "workers" / leaving.id).unlink()
    monkeypatch.setattr("cru.features.fleet.workers.time.sleep", lambda _: leaving.leave())
    assert registered(queue, tmp_path).find_dead() == []


def test_the_id_of_a_home_stays(tmp_path: Path) -> None:
    assert home_id(tmp_path / "fleet") == home_id(tmp_path / "fleet") != ""
