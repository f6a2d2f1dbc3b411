"""`cru batch --shared`: workers with homes of their own go on with each other's tasks."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.faces.batches import begun, results, write_items
from tests.kit import Call, Hang, HomeDir, Reply, cru, server, start, wait_until


@pytest.fixture
def other(home: HomeDir, tmp_path: Path) -> HomeDir:
    """Another home for the same project, as on another machine."""
    there = HomeDir(tmp_path / "other", home.project)
    there.path.mkdir()
    return there


def configure(model: Any, *homes: HomeDir) -> None:
    for home in homes:
        home.configure('mode = "trust"\n', url=model.url)


@pytest.mark.slow
def test_another_home_goes_on_where_a_killed_worker_was_and_pays_nothing_twice(
    home: HomeDir, other: HomeDir, fleet: dict[str, str]
) -> None:
    look = Reply("I look.", calls=[Call("bash", {"command": "echo x >>count"})])
    with server([look, Hang(), Reply("answer")]) as model:
        configure(model, home, other)
        write_items(home, {"prompt": "one", "id": "a"})
        assert cru("batch", "p.jsonl", "--name", "n", "--shared", "--queue", home=home, env=fleet).code == 0
        with start("worker", "--beat", "0.2", home=home, env=fleet) as killed:
            begun(home, killed, model.requests, 2)
            killed.kill()
        with start("worker", "--beat", "0.2", home=other, env=fleet) as second:
            second.wait_for("missed 4 beats")
            second.wait_for("n/a done after")
            second.signal(signal.SIGTERM)
            assert second.wait().code == 0
        assert len(model.requests) == 3
        assert model.requests[2].body["messages"] == model.requests[1].body["messages"]
    assert (home.project / "count").read_text() == "x\n"
    fetched = cru("batch", "--name", "n", "--fetch", home=home, env=fleet)
    assert (fetched.code, fetched.out) == (0, "n: 1 conversations fetched, 0 were here\n")
    assert home.log("n-a") == other.log("n-a") and home.log("n-a")[-1]["entry_type"] == "leg_ended"
    assert "n-a" in cru("-L", home=home).out
    run = cru("batch", "p.jsonl", "--name", "n", "--shared", "--out", "r.jsonl", home=home, env=fleet)
    assert run.code == 0 and results(home)["a"]["response"] == "answer"
    assert cru("batch", "--name", "n", home=home, env=fleet).code == 0  # it is known to be shared
    refused = cru("batch", "p.jsonl", "--name", "n", home=home, env=fleet)
    assert refused.code == 2 and "add --shared" in refused.err
    assert list((other.cru / "fleet" / "sockets").iterdir()) == []


@pytest.mark.slow
def test_a_call_that_was_running_at_the_death_of_a_machine_may_have_run(
    home: HomeDir, other: HomeDir, fleet: dict[str, str]
) -> None:
    look = Reply(calls=[Call("bash", {"command": "echo x >>count; sleep 600"})])
    with server([look, Reply("answer")]) as model:
        configure(model, home, other)
        write_items(home, {"prompt": "one", "id": "a"})
        cru("batch", "p.jsonl", "--name", "n", "--shared", "--queue", home=home, env=fleet)
        with start("worker", "--beat", "0.2", home=home, env=fleet) as killed:
            wait_until(lambda: (home.project / "count").exists())
            killed.kill()
        with start("worker", "--beat", "0.2", home=other, env=fleet) as second:
            second.wait_for("n/a done after")
            second.signal(signal.SIGTERM)
            assert second.wait().code == 0
        assert "may have run" in str(model.requests[-1].body["messages"])
    assert (home.project / "count").read_text() == "x\n"


@pytest.mark.slow
def test_a_run_whose_task_another_worker_has_ends_before_it_acts(
    home: HomeDir, other: HomeDir, fleet: dict[str, str]
) -> None:
    """The first worker is stopped, the other one takes its task, and the run of the first one hears of it with its next entry."""
    work = [Call("bash", {"command": "echo x >>count"})]
    with server([Reply("late", calls=work, delay=4), Reply("in time", calls=work), Reply("answer")]) as model:
        configure(model, home, other)
        write_items(home, {"prompt": "one", "id": "a"})
        cru("batch", "p.jsonl", "--name", "n", "--shared", "--queue", home=home, env=fleet)
        with start("worker", "--beat", "0.2", home=home, env=fleet) as stopped:
            begun(home, stopped, model.requests)
            stopped.signal(signal.SIGSTOP)
            with start("worker", "--beat", "0.2", home=other, env=fleet) as second:
                second.wait_for("n/a done after")
                wait_until(lambda: any(entry["content"] == "late" for entry in home.log("n-a")))
                stopped.signal(signal.SIGCONT)
                stopped.wait_for("took this worker for dead")
                second.signal(signal.SIGTERM)
                second.wait()
    assert (home.project / "count").read_text() == "x\n"
    assert "late" not in [entry["content"] for entry in other.log("n-a")]
    fetched = cru("batch", "--name", "n", "--fetch", home=home, env=fleet)
    assert "what only this home had is put aside" in fetched.err and home.log("n-a") == other.log("n-a")


@pytest.mark.slow
@pytest.mark.real_start
def test_workers_whose_clocks_differ_by_days_judge_nobody_by_them(
    home: HomeDir, other: HomeDir, tmp_path: Path, fleet: dict[str, str]
) -> None:
    (tmp_path / "clock").mkdir()
    source = "import time\nreal = time.time\ntime.time = lambda: real() + {days} * 86400\nopen(__file__ + '.used', 'w').close()\n"
    with server([Hang(), Reply("answer")]) as model:
        configure(model, home, other)
        write_items(home, {"prompt": "one", "id": "a"})
        cru("batch", "p.jsonl", "--name", "n", "--shared", "--queue", home=home, env=fleet)
        with start("worker", "--beat", "0.2", home=home, env=fleet) as worker:
            begun(home, worker, model.requests)
            for days in (-10, 10):
                (tmp_path / "clock" / "sitecustomize.py").write_text(source.format(days=days))
                wrong = {**fleet, "PYTHONPATH": str(tmp_path / "clock")}
                with start("worker", "--beat", "0.2", home=other, env=wrong) as second:
                    second.wait_for("working on")
                    time.sleep(2)  # ten beats: as long as nothing happens
                    assert "dead" not in second.err and worker.alive
                    if days > 0:
                        worker.kill()
                        second.wait_for("missed 4 beats")
                        second.wait_for("n/a done after")
                    second.signal(signal.SIGTERM)
                    assert second.wait().code == 0
        assert len(model.requests) == 2 and (tmp_path / "clock" / "sitecustomize.py.used").exists()
