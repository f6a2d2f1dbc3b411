"""`cru batch` and `cru worker` as people run them: real processes, the scripted model, kill -9."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from tests.faces.batches import begun, prompts, results, scripted, states, write_items
from tests.kit import Call, Done, Hang, HomeDir, Reply, Started, cru, pty, server, start, wait_until

SLOW_CLOSE = Path(__file__).with_name("slow_close.py")


@pytest.mark.slow
def test_all_items_are_asked_once_each_in_its_own_context(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b", "context": "own"})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    assert run.code == 0, run.err
    assert [line.split()[:2] for line in run.out.splitlines()[:2]] == [["a", "done"], ["b", "done"]]
    assert run.out.splitlines()[-1].startswith("2 done; 24 tokens, $1.00; ")
    assert "cru: 2/2" in run.err
    assert {key: r["response"] for key, r in results(home).items()} == {"a": "fine", "b": "fine"}
    tokens = results(home)["a"]["tokens"]
    assert (tokens["input"], tokens["output"], tokens["cost"], tokens["unpriced"]) == (10, 2, 0.5, 0)
    assert prompts(home, "n-a") == ["one"] and prompts(home, "own") == ["two"]
    again = cru("batch", "p.jsonl", "--name", "n", "--out", "r2.jsonl", home=home)
    assert again.code == 0 and "2 of them finished before" in again.err
    assert results(home, "r2.jsonl") == results(home)
    assert prompts(home, "n-a") == ["one"]
    assert cru("batch", home=home).out == "n: 2 done\n"
    assert cru("batch", "--name", "n", "--forget", home=home).out == "n: 2 items forgotten\n"
    assert cru("batch", home=home).out.startswith("no batches")


@pytest.mark.slow
def test_a_look_for_results_while_the_database_is_closed_disturbs_nothing(home: HomeDir) -> None:
    scripted(home)
    for number in range(4):
        write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
        words = ("batch", "p.jsonl", "--name", f"n{number}", "--out", "r.jsonl")
        run = cru(*words, home=home, script=SLOW_CLOSE)
        assert (run.code, sorted(results(home))) == (0, ["a", "b"]), run.err


def test_rules_hold_and_nobody_is_asked(home: HomeDir) -> None:
    scripted(home, 'call: bash {"command": "touch ran"}\n---\ntext: the end\n')
    write_items(home, {"prompt": "one", "id": "a"})
    assert cru("batch", "p.jsonl", "--name", "n", home=home).code == 0
    assert not (home.project / "ran").exists()
    [result] = [entry for entry in home.log("n-a") if entry.get("entry_type") == "tool_result"]
    assert result["metadata"]["is_error"]


def test_plugins_hold_as_in_a_run_by_hand(home: HomeDir) -> None:
    scripted(home, 'call: bash {"command": "touch ran"}\n---\ntext: the end\n')
    (home.cru / "plugins").mkdir()
    guard = 'cru.on("tool:before_call", function() return { cancel = true, reason = "not in a batch" } end)\n'
    (home.cru / "plugins" / "guard.lua").write_text(guard)
    write_items(home, {"prompt": "one", "id": "a", "mode": "trust"})
    assert cru("batch", "p.jsonl", "--name", "n", home=home).code == 0
    [result] = [entry for entry in home.log("n-a") if entry.get("entry_type") == "tool_result"]
    assert "not in a batch" in result["content"] and not (home.project / "ran").exists()


@pytest.mark.slow
def test_an_item_waits_while_another_run_has_its_context(home: HomeDir) -> None:
    with server([Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a", "context": "chat"})
        with start("-C", "chat", "by hand", home=home) as other:
            begun(home, other, model.requests)
            with start("batch", "p.jsonl", "--name", "n", home=home) as run:
                run.wait_for("a waits: another run has the context chat")
                other.signal(signal.SIGTERM)
                assert run.wait().code == 0


@pytest.mark.slow
def test_what_fails_is_retried_by_the_command_that_is_named(home: HomeDir) -> None:
    scripted(home, "error: 400 not today\n---\ntext: now\n")
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", "--name", "n", home=home)
    assert run.code == 1 and "failed" in run.out and "not today" in run.out
    command = run.err.rpartition("once more: ")[2].strip()
    assert command == "cru batch p.jsonl --name n --retry"
    assert cru("batch", "p.jsonl", "--name", "n", home=home).code == 1  # nothing is run again without being asked for
    scripted(home)
    assert cru(*command.split()[1:], home=home).code == 0
    assert prompts(home, "n-a") == ["one"]


@pytest.mark.slow
def test_an_item_that_takes_too_long_is_ended_and_can_go_on(home: HomeDir) -> None:
    with server([Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a", "seconds": 2})
        run = cru("batch", "p.jsonl", "--name", "n", "--json", home=home)
        last = msgspec.json.decode(run.out.splitlines()[-1])
        assert (run.code, last["code"], last["payload"]["timed-out"]) == (1, 1, 1)
        finished = next(msgspec.json.decode(line) for line in run.out.splitlines() if "item:finished" in line)[
            "payload"
        ]
        assert finished["error"] == "it took longer than 2 s" and "-C n-a --resume" in finished["resume"]
        assert cru("-C", "n-a", "--resume", home=home).out == "answer\n"


def test_bad_lines_are_named_and_nothing_is_run(home: HomeDir) -> None:
    scripted(home)
    (home.project / "p.jsonl").write_text('{"prompt": "one", "id": "a"}\n{"promt": "two"}\nno\n')
    run = cru("batch", "p.jsonl", "--name", "n", home=home)
    assert run.code == 2 and "p.jsonl:2: there is no field `promt`" in run.err and "p.jsonl:3: not JSON" in run.err
    assert "--skip-bad" in run.err and states(home) == {}
    run = cru("batch", "p.jsonl", "--name", "n", "--skip-bad", home=home)
    assert run.code == 0 and "p.jsonl:3 is left out" in run.err and states(home) == {"a": "finished"}


def test_a_file_that_is_not_there_is_named(home: HomeDir) -> None:
    run = cru("batch", "nowhere.jsonl", home=home)
    assert run.code == 1 and "nowhere.jsonl: No such file" in run.err


@pytest.mark.slow
def test_what_is_queued_only_is_run_by_a_worker(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    run = cru("batch", "p.jsonl", "--name", "n", "--queue", home=home)
    assert run.code == 0 and "2 items queued" in run.err and states(home) == {"a": "queued", "b": "queued"}
    worker = cru("worker", "--once", "--concurrency", "2", home=home)
    assert worker.code == 0 and "n/a done after" in worker.err and states(home) == {"a": "finished", "b": "finished"}
    assert cru("batch", "p.jsonl", "--name", "n", home=home).code == 0
    assert list((home.cru / "fleet" / "workers").iterdir()) == []


@pytest.mark.slow
def test_a_worker_is_killed_and_another_one_goes_on_without_paying_twice(home: HomeDir) -> None:
    look = Reply(calls=[Call("bash", {"command": "echo x >>count"})])
    with server([look, Hang(), Reply("answer")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        cru("batch", "p.jsonl", "--name", "n", "--queue", home=home)
        with start("worker", home=home) as killed, start("worker", "--beat", "0.2", home=home) as other:
            begun(home, killed, model.requests, 2)
            first = killed if "n/a begins" in killed.err else other
            second = other if first is killed else killed
            first.kill()
            if second is killed:
                second.signal(signal.SIGTERM)
                second.wait()
                second = start("worker", "--once", home=home)
            with second:
                wait_until(lambda: states(home) == {"a": "finished"})
        assert len(model.requests) == 3
        assert model.requests[2].body["messages"] == model.requests[1].body["messages"]
    assert (home.project / "count").read_text() == "x\n"
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    [result] = results(home).values()
    assert (run.code, result["response"]) == (0, "answer")
    assert [death["why"] for death in result["deaths"]] == ["the worker was killed"]


@pytest.mark.slow
def test_a_batch_that_is_killed_goes_on_with_the_same_command(home: HomeDir) -> None:
    with server([Hang(), Reply("first"), Reply("second")]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
        command = ("batch", "p.jsonl", "--name", "n", "--parallel", "1", "--out", "r.jsonl")
        with start(*command, home=home) as run:
            begun(home, run, model.requests)
            run.kill()
            done = cru(*command, home=home)
        assert done.code == 0 and "is dead (the worker was killed)" in done.err, done.err
        assert len(model.requests) == 3
    assert {key: r["response"] for key, r in results(home).items()} == {"a": "first", "b": "second"}
    assert prompts(home, "n-a") == ["one"]


@pytest.mark.slow
def test_of_many_workers_that_begin_at_once_one_gets_the_task(home: HomeDir) -> None:
    """On a home without a queue, too: its tables are made once."""
    with server([Reply("answer", delay=1)]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        with ExitStack() as stack:
            workers = [stack.enter_context(start("worker", home=home)) for _ in range(6)]
            cru("batch", "p.jsonl", "--name", "n", "--queue", home=home)
            wait_until(lambda: states(home) == {"a": "finished"})
            for worker in workers:
                worker.signal(signal.SIGTERM)
            done = [worker.wait() for worker in workers]
        assert [run.code for run in done] == [0] * 6 and len(model.requests) == 1
        assert sum("n/a begins" in run.err for run in done) == 1


def test_items_of_a_newer_cru_are_left_to_it_and_told(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    cru("batch", "p.jsonl", "--name", "n", "--queue", home=home)
    connection = sqlite3.connect(home.cru / "fleet" / "queue.sqlite")
    item = '{"prompt": "one", "context": "n-a", "later": true}'
    connection.execute("UPDATE cru_tasks SET version = 99, item = ? WHERE id = 'a'", (item,))
    connection.commit()
    connection.close()
    worker = cru("worker", "--once", home=home)
    assert worker.code == 0 and "1 queued tasks are of a newer cru: update cru to work on them" in worker.err
    assert states(home) == {"a": "queued", "b": "finished"}
    run = cru("batch", "p.jsonl", "--name", "n", home=home)
    assert (run.code, run.err.count("Traceback")) == (1, 0) and "1 item not finished" in run.err


@pytest.mark.slow
def test_the_run_of_a_task_that_dies_again_and_again_is_given_up_with_its_history(home: HomeDir) -> None:
    scripted(home, 'loop: yes\ncall: bash {"command": "kill -9 $PPID"}\n')
    home.configure(f'model = "scripted:{home.path / "script.txt"}"\nmode = "trust"\non_interrupted = "retry"\n')
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", "--name", "n", "--max-deaths", "3", "--out", "r.jsonl", home=home)
    [result] = results(home).values()
    assert (run.code, result["status"], len(result["deaths"])) == (1, "dead", 3)
    assert "its run died 3 times: it was ended by SIGKILL" in result["error"]


@pytest.mark.slow
def test_ten_workers_that_one_task_kills_leave_it_dead_with_its_history(home: HomeDir) -> None:
    """Each worker is killed by what its task runs; the last one that sees it dead buries it and goes on with the next task."""
    kill = "kill -9 $(ps -o ppid= -p $PPID)"
    poison = Reply(calls=[Call("bash", {"command": kill})])
    with server([lambda request: poison if "poison" in str(request.body["messages"]) else Reply("fine")] * 30) as model:
        home.configure('mode = "trust"\non_interrupted = "retry"\n', url=model.url)
        write_items(home, {"prompt": "poison", "id": "a"}, {"prompt": "good", "id": "b"})
        cru("batch", "p.jsonl", "--name", "n", "--queue", "--max-deaths", "10", home=home)
        deaths = 0
        for _ in range(12):
            run = cru("worker", "--once", home=home)
            if run.code == 0:
                break
            assert run.code == -signal.SIGKILL, run
            deaths += 1
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    found = results(home)
    assert (run.code, deaths, found["b"]["status"], found["a"]["status"]) == (1, 10, "done", "dead")
    assert len(found["a"]["deaths"]) == 10
    assert {death["why"] for death in found["a"]["deaths"]} == {"the worker was killed"}


def interrupted(home: HomeDir, run: Started) -> Done:
    run.signal(signal.SIGINT)
    run.wait_for("nothing more is begun")
    run.signal(signal.SIGINT)
    return run.wait()


@pytest.mark.slow
def test_ctrl_c_twice_ends_what_runs_and_the_same_command_goes_on(home: HomeDir) -> None:
    with server([Hang(), Reply("first"), Reply("second")]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
        command = ("batch", "p.jsonl", "--name", "n", "--parallel", "1", "--out", "r.jsonl")
        with start(*command, home=home) as run:
            begun(home, run, model.requests)
            done = interrupted(home, run)
        assert done.code == 130 and "2 items not finished; go on with: cru batch p.jsonl" in done.err
        assert states(home) == {"a": "queued", "b": "queued"}
        assert cru(*command, home=home).code == 0
    found = results(home)
    assert {key: r["response"] for key, r in found.items()} == {"a": "first", "b": "second"}
    assert not any(r.get("deaths") for r in found.values())


def test_the_first_signal_lets_what_runs_finish(home: HomeDir) -> None:
    (home.path / "script.txt").write_text("delay: 1s\ntext: fine\n")
    home.configure(f'model = "scripted:{home.path / "script.txt"}"\n')
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    cru("batch", "p.jsonl", "--name", "n", "--queue", home=home)
    with start("worker", home=home) as worker:
        worker.wait_for("n/a begins")
        worker.signal(signal.SIGTERM)
        done = worker.wait()
    assert done.code == 0 and "1 running may finish, 20 s at most" in done.err
    assert states(home) == {"a": "finished", "b": "queued"}


def test_a_full_disk_for_results_loses_none(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "/dev/full", home=home)
    assert run.code == 1 and "cannot be written to /dev/full" in run.err and "they are in the queue" in run.err
    assert cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home).code == 0
    assert results(home)["a"]["response"] == "fine"


def test_on_a_terminal_there_is_one_line_of_progress(home: HomeDir) -> None:
    (home.path / "script.txt").write_text("delay: 1s\ntext: fine\n")
    home.configure(f'model = "scripted:{home.path / "script.txt"}"\n')
    write_items(home, {"prompt": "one", "id": "a"})
    with pty("batch", "p.jsonl", "--name", "n", home=home) as terminal:
        terminal.expect("0/1 · 1 running")
        terminal.expect("1 done")
        assert terminal.wait() == 0


def test_a_server_that_is_not_there_is_named_without_the_password(home: HomeDir) -> None:
    run = cru("batch", home=home, env={"CRU_DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/x?connect_timeout=1"})
    assert run.code == 1 and "postgresql://127.0.0.1:1/x cannot be used" in run.err and "secret" not in run.err
