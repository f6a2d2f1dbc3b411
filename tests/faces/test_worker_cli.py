"""`cru worker` as people run it: real processes, the scripted model, kill -9."""

from __future__ import annotations

import signal
from contextlib import ExitStack, closing

import pytest
from tests.faces.batches import begun, results, scripted, write_items
from tests.features.fleet.support import write_item
from tests.kit import Call, Hang, HomeDir, Reply, cru, server, start, wait_until

from cru.features.fleet.database import Database
from cru.features.fleet.queue import WorkQueue
from cru.features.fleet.queued_batch import QueuedBatch


def states(env: dict[str, str]) -> dict[str, str]:
    """Where the items of the batch `n` stand."""
    with closing(Database(env["CRU_DATABASE_URL"])) as database:
        return {row.id: row.state.value for row in QueuedBatch(WorkQueue(database, "any"), "n").rows()}


def test_without_a_database_there_is_no_queue_to_work_on(home: HomeDir) -> None:
    run = cru("worker", "--once", home=home)
    assert run.code == 1 and "cru worker needs a database" in run.err and "cru batch FILE" in run.err


@pytest.mark.slow
def test_what_is_queued_only_is_run_by_a_worker(home: HomeDir, fleet: dict[str, str]) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    run = cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
    assert run.code == 0 and "2 items queued" in run.err and states(fleet) == {"a": "queued", "b": "queued"}
    worker = cru("worker", "--once", "--concurrency", "2", home=home, env=fleet)
    assert worker.code == 0 and "n/a done after" in worker.err and states(fleet) == {"a": "finished", "b": "finished"}
    assert cru("batch", "p.jsonl", "--name", "n", home=home, env=fleet).code == 0


@pytest.mark.slow
def test_a_worker_is_killed_and_another_one_goes_on_without_paying_twice(home: HomeDir, fleet: dict[str, str]) -> None:
    look = Reply(calls=[Call("bash", {"command": "echo x >>count"})])
    with server([look, Hang(), Reply("answer")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
        with (
            start("worker", "--beat", "0.2", home=home, env=fleet) as killed,
            start("worker", "--beat", "0.2", home=home, env=fleet) as other,
        ):
            begun(home, killed, model.requests, 2)
            first = killed if "n/a begins" in killed.err else other
            second = other if first is killed else killed
            first.kill()
            if second is killed:
                second.signal(signal.SIGTERM)
                second.wait()
                second = start("worker", "--once", "--beat", "0.2", home=home, env=fleet)
            with second:
                wait_until(lambda: states(fleet) == {"a": "finished"})
        assert len(model.requests) == 3
        assert model.requests[2].body["messages"] == model.requests[1].body["messages"]
    assert (home.project / "count").read_text() == "x\n"
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home, env=fleet)
    [result] = results(home).values()
    assert (run.code, result["response"]) == (0, "answer")
    assert [death["why"] for death in result["deaths"]] == ["the worker missed 4 beats"]


@pytest.mark.slow
def test_of_many_workers_that_begin_at_once_one_gets_the_task(home: HomeDir, fleet: dict[str, str]) -> None:
    """On a home without a queue, too: its tables are made once."""
    with server([Reply("answer", delay=1)]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        with ExitStack() as stack:
            workers = [stack.enter_context(start("worker", home=home, env=fleet)) for _ in range(6)]
            cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
            wait_until(lambda: states(fleet) == {"a": "finished"})
            for worker in workers:
                worker.signal(signal.SIGTERM)
            done = [worker.wait() for worker in workers]
        assert [run.code for run in done] == [0] * 6 and len(model.requests) == 1
        assert sum("n/a begins" in run.err for run in done) == 1


def test_items_of_a_newer_cru_are_left_to_it_and_told(home: HomeDir, fleet: dict[str, str]) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
    with closing(Database(fleet["CRU_DATABASE_URL"])) as database:
        write_item(WorkQueue(database, "any"), "a", {"prompt": "one", "context": "n-a", "later": True}, version=99)
    worker = cru("worker", "--once", home=home, env=fleet)
    assert worker.code == 0 and "1 queued tasks are of a newer cru: update cru to work on them" in worker.err
    assert states(fleet) == {"a": "queued", "b": "finished"}
    run = cru("batch", home=home, env=fleet)
    assert run.out == "n: 1 queued, 1 done\n"


def test_the_first_signal_lets_what_runs_finish(home: HomeDir, fleet: dict[str, str]) -> None:
    (home.path / "script.txt").write_text("delay: 1s\ntext: fine\n")
    home.configure(f'model = "scripted:{home.path / "script.txt"}"\n')
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
    with start("worker", home=home, env=fleet) as worker:
        worker.wait_for("n/a begins")
        worker.signal(signal.SIGTERM)
        done = worker.wait()
    assert done.code == 0 and "1 running may finish, 20 s at most" in done.err
    assert states(fleet) == {"a": "finished", "b": "queued"}


@pytest.mark.slow
def test_a_worker_that_stops_beats_until_its_runs_have_ended(home: HomeDir, fleet: dict[str, str]) -> None:
    """Otherwise others take over what runs, and ask it a second time."""
    with server([Hang()]) as model, closing(Database(fleet["CRU_DATABASE_URL"])) as database:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
        with start("worker", "--beat", "0.1", "--grace", "600", home=home, env=fleet) as worker:
            begun(home, worker, model.requests)
            worker.signal(signal.SIGTERM)
            worker.wait_for("1 running may finish")
            beats: set[object] = set()

            def has_beaten() -> bool:
                with database.transaction() as run:
                    beats.update(run("SELECT last_heartbeat FROM procrastinate_workers"))
                return len(beats) > 2

            wait_until(has_beaten)
            worker.signal(signal.SIGTERM)
            assert worker.wait().code == 0
    assert states(fleet) == {"a": "queued"}


@pytest.mark.slow
def test_ten_workers_that_one_task_kills_leave_it_dead_with_its_history(home: HomeDir, fleet: dict[str, str]) -> None:
    """Each worker is killed by what its task runs; the last one that sees it dead buries it and goes on with the next task."""
    kill = "kill -9 $(ps -o ppid= -p $PPID)"
    poison = Reply(calls=[Call("bash", {"command": kill})])
    with server([lambda request: poison if "poison" in str(request.body["messages"]) else Reply("fine")] * 30) as model:
        home.configure('mode = "trust"\non_interrupted = "retry"\n', url=model.url)
        write_items(home, {"prompt": "poison", "id": "a"}, {"prompt": "good", "id": "b"})
        cru("batch", "p.jsonl", "--name", "n", "--queue", "--max-deaths", "10", home=home, env=fleet)
        deaths = 0
        for _ in range(12):
            run = cru("worker", "--once", "--beat", "0.2", home=home, env=fleet)
            if run.code == 0:
                break
            assert run.code == -signal.SIGKILL, run
            deaths += 1
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home, env=fleet)
    found = results(home)
    assert (run.code, deaths, found["b"]["status"], found["a"]["status"]) == (1, 10, "done", "dead")
    assert len(found["a"]["deaths"]) == 10
    assert {death["why"] for death in found["a"]["deaths"]} == {"the worker missed 4 beats"}
