"""`cru batch` and `cru worker` as people run them: real processes, the scripted model, kill -9."""

from __future__ import annotations

import signal

import msgspec
import pytest
from tests.faces.batches import begun, prompts, results, scripted, states, write_items
from tests.kit import Call, Done, Hang, HomeDir, Reply, Started, cru, pty, server, start


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
def test_a_batch_that_is_killed_goes_on_with_the_same_command(home: HomeDir) -> None:
    with server([Hang(), Reply("first"), Reply("second")]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
        command = ("batch", "p.jsonl", "--name", "n", "--parallel", "1", "--out", "r.jsonl")
        with start(*command, home=home) as run:
            begun(home, run, model.requests)
            run.kill()
            done = cru(*command, home=home)
        assert done.code == 0 and "is dead" not in done.err, done.err
        assert len(model.requests) == 3
    assert {key: r["response"] for key, r in results(home).items()} == {"a": "first", "b": "second"}
    assert prompts(home, "n-a") == ["one"]


@pytest.mark.slow
def test_the_run_of_a_task_that_dies_again_and_again_is_given_up_with_its_history(home: HomeDir) -> None:
    scripted(home, 'loop: yes\ncall: bash {"command": "kill -9 $PPID"}\n')
    home.configure(f'model = "scripted:{home.path / "script.txt"}"\nmode = "trust"\non_interrupted = "retry"\n')
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", "--name", "n", "--max-deaths", "3", "--out", "r.jsonl", home=home)
    [result] = results(home).values()
    assert (run.code, result["status"], len(result["deaths"])) == (1, "dead", 3)
    assert "its run died 3 times: it was ended by SIGKILL" in result["error"]


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


def test_a_full_disk_for_results_loses_none(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "/dev/full", home=home)
    assert run.code == 1 and "cannot be written to /dev/full" in run.err and "they are kept" in run.err
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


@pytest.mark.slow
def test_a_second_run_of_the_same_file_waits_for_the_first(home: HomeDir) -> None:
    with server([Reply("answer", delay=1)]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        with start("batch", "p.jsonl", "--name", "n", home=home) as first:
            begun(home, first, model.requests)
            second = cru("batch", "p.jsonl", "--name", "n", home=home)
            assert first.wait().code == 0
        assert second.code == 0 and "another run works on the batch n; this one waits for it" in second.err
        assert len(model.requests) == 1


@pytest.mark.slow
def test_an_item_that_kills_its_batch_again_and_again_is_given_up(home: HomeDir) -> None:
    kill = "kill -9 $(ps -o ppid= -p $PPID)"
    poison = Reply(calls=[Call("bash", {"command": kill})])
    with server([lambda request: poison if "poison" in str(request.body["messages"]) else Reply("fine")] * 30) as model:
        home.configure('mode = "trust"\non_interrupted = "retry"\n', url=model.url)
        write_items(home, {"prompt": "poison", "id": "a"}, {"prompt": "good", "id": "b"})
        command = ("batch", "p.jsonl", "--name", "n", "--parallel", "1", "--max-deaths", "3", "--out", "r.jsonl")
        codes = [cru(*command, home=home).code for _ in range(4)]
    assert codes == [-signal.SIGKILL] * 3 + [1]
    found = results(home)
    assert (found["a"]["status"], found["b"]["status"]) == ("dead", "done")
    assert [death["why"] for death in found["a"]["deaths"]] == ["cru batch was killed"] * 3


@pytest.mark.parametrize("flag", ["--queue", "--shared", "--fetch"])
def test_what_needs_a_database_says_so(home: HomeDir, flag: str) -> None:
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", flag, home=home)
    assert run.code == 2 and f"{flag} needs a database, which CRU_DATABASE_URL names" in run.err
