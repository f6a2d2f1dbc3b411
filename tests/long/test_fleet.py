"""Batches and workers that are killed, stopped, and lose their database, over many tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.fleet import FleetRun
from tests.kit import Hang, HomeDir, Reply, cru, server, start, wait_until
from tests.kit.databases import Databases
from tests.kit.postgres import PostgresServer, postgres, programs

pytestmark = pytest.mark.long
TASKS = int(os.environ.get("CRU_TEST_TASKS", "1000"))
KILLS = 20
needs_postgres = pytest.mark.skipif(programs() is None, reason="Postgres is not installed (Debian: postgresql)")


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server that tests may crash."""
    with postgres() as running:
        yield running


def test_twenty_kills_of_a_batch_lose_no_task_and_run_none_twice(tmp_path: Path) -> None:
    run = FleetRun(tmp_path, TASKS)
    run.work(2, min(KILLS, TASKS // 4))
    assert run.deaths == min(KILLS, TASKS // 4)
    assert run.problems() == []


def test_twenty_kills_of_workers_lose_no_task_and_run_none_twice(tmp_path: Path, url: str) -> None:
    run = FleetRun(tmp_path, TASKS, url)
    run.work(2, min(KILLS, TASKS // 4))
    assert run.deaths == min(KILLS, TASKS // 4)
    assert run.problems() == []


def test_kills_of_workers_with_homes_of_their_own_lose_no_task_either(tmp_path: Path, url: str) -> None:
    run = FleetRun(tmp_path, TASKS // 10, url, shared=True)
    run.work(2, 5)
    assert run.deaths == 5 and run.problems() == []


@needs_postgres
def test_a_worker_waits_for_a_database_that_is_gone_and_finishes_what_it_has(
    home: HomeDir, database: PostgresServer
) -> None:
    env = {"CRU_DATABASE_URL": Databases(database).new()}
    (home.path / "script.txt").write_text("delay: 2s\ntext: fine\n")
    home.configure(f'model = "scripted:{home.path / "script.txt"}"\n')
    (home.project / "p.txt").write_text("one\n")
    assert cru("batch", "p.txt", "--name", "n", "--queue", home=home, env=env).code == 0
    with start("worker", "--once", "--beat", "0.2", home=home, env=env) as worker:
        worker.wait_for("begins")
        database.crash()
        try:
            worker.wait_for("cannot be used")
        finally:
            database.start()
        worker.wait_for("the queue is back")
        done = worker.wait()
    assert done.code == 0 and "done after" in done.err and "died" not in done.err
    assert cru("batch", home=home, env=env).out == "n: 1 done\n"


def test_tasks_of_another_home_are_left_alone_and_named(home: HomeDir, fleet: dict[str, str]) -> None:
    (home.project / "p.txt").write_text("one\n")
    home.configure('model = "scripted:/nowhere"\n')
    assert cru("batch", "p.txt", "--name", "n", "--queue", home=home, env=fleet).code == 0
    run = cru("--home", str(home.path / "other"), "worker", "--once", home=home, env=fleet)
    assert run.code == 0 and "1 queued tasks belong to another home" in run.err


def test_a_worker_that_was_stopped_is_taken_for_dead_and_its_task_runs_once(
    home: HomeDir, fleet: dict[str, str]
) -> None:
    with server([Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        (home.project / "p.txt").write_text("one\n")
        cru("batch", "p.txt", "--name", "n", "--queue", home=home, env=fleet)
        with start("worker", "--beat", "0.2", home=home, env=fleet) as stopped:
            wait_until(lambda: len(model.requests) == 1)
            stopped.signal(signal.SIGSTOP)
            with start("worker", "--beat", "0.2", home=home, env=fleet) as other:
                other.wait_for("missed 4 beats")
                other.wait_for("begins")  # the run of the stopped worker still has the context
                stopped.signal(signal.SIGCONT)
                stopped.wait_for("took this worker for dead")
                other.wait_for("done after")
                other.signal(signal.SIGTERM)
                assert other.wait().code == 0
        assert len(model.requests) == 2
    [prompt] = [e for e in home.log(next((home.cru / "contexts").glob("n-*")).name) if e.get("role") == "user"]
    assert prompt["content"] == "one"
