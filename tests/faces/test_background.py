"""Commands in the background, with the real command: what the model, the person and the next process see of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Received, Reply, cru, kill_at, pty, server, start, wait_until
from tests.kit.processes import is_running


def number_in(home: HomeDir, name: str) -> int:
    """A process id, 0: it is not written yet."""
    file = home.project / name
    return int(file.read_text() or 0) if file.exists() else 0


def background(command: str, **more: object) -> Call:
    return Call("bash", {"command": command, "background": True, **more})


def texts(request: object) -> str:
    return json.dumps(request, ensure_ascii=False)


def test_a_run_ends_what_runs_in_the_background_and_says_so(home: HomeDir) -> None:
    waits = Call("bash", {"command": "until [ -s pid ]; do sleep 0.01; done"})
    with server([Reply(calls=[background("echo $$ >pid; exec sleep 60"), waits]), Reply("done")]) as model:
        home.configure(url=model.url)
        done = cru("-t", "go", home=home)
    assert (done.code, done.out) == (0, "done\n")
    assert ") ended with the session: echo $$ >pid; exec sleep 60" in done.err
    assert not is_running(number_in(home, "pid"))


def test_the_end_of_a_command_reaches_the_model_at_the_end_of_its_turn(home: HomeDir) -> None:
    waits = Call(
        "bash",
        {"command": 'until grep -q \'"completed"\' "$CRU_HOME"/contexts/*/tasks/*/task.json; do sleep 0.01; done'},
    )
    replies = [Reply(calls=[background("echo built")]), Reply(calls=[waits]), Reply("first"), Reply("second")]
    with server(replies) as model:
        home.configure(url=model.url)
        done = cru("-t", "go", home=home)
        requests = [texts(request.body) for request in model.requests]
    assert (done.code, done.out) == (0, "first\nsecond\n")
    assert ["(command: echo built) is done]" in request for request in requests] == [False, False, False, True]


@pytest.mark.parametrize("source", ["echo $$ >pid; exec sleep 60", "setsid sh -c 'echo $$ >pid; exec sleep 60' & wait"])
def test_kill_9_leaves_nothing_of_a_command_in_the_background(home: HomeDir, source: str) -> None:
    waits = Call("bash", {"command": "sleep 60"})
    with server([Reply(calls=[background(source), waits])]) as model:
        home.configure(url=model.url)
        with start("-t", "go", home=home) as run:
            assert kill_at(run, lambda: number_in(home, "pid") > 0)
            wait_until(lambda: not is_running(number_in(home, "pid")))


def guardian_of(pid: int) -> int:
    """The shell below a run that ends its commands after a kill, 0: there is none."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and "sweep.py" in Path(f"/proc/{name}/cmdline").read_text():
                return int(name)
        except OSError:
            continue
    return 0


SPREAD = "env -i setsid sh -c 'echo $$ >pid; exec sleep 60' & exec sleep 60"


def test_kill_9_leaves_nothing_also_if_its_guardian_was_killed_before(home: HomeDir) -> None:
    with server([Reply(calls=[background(SPREAD), Call("bash", {"command": "sleep 60"})])]) as model:
        home.configure(url=model.url)
        with start("-t", "go", home=home) as run:
            wait_until(lambda: number_in(home, "pid") > 0)
            first = guardian_of(run.pid)
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: guardian_of(run.pid) not in (0, first))
            run.wait_for(
                "something ended the process that ends commands if cru is killed; another one watches them now"
            )
            run.kill()
            wait_until(lambda: not is_running(number_in(home, "pid")))


def test_what_outlived_cru_and_its_guardian_is_ended_and_told_at_the_next_start(home: HomeDir) -> None:
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    with server([Reply(calls=[background(SPREAD), Call("bash", {"command": "sleep 60"})]), Reply("I see")]) as model:
        home.configure(url=model.url)
        with start("-t", "go", home=home) as run:
            wait_until(lambda: number_in(home, "pid") > 0 and '"mark":"/' in "".join(records(home)))
            guardian = guardian_of(run.pid)
            os.kill(run.pid, signal.SIGSTOP)  # so that it cannot start another one
            os.kill(guardian, signal.SIGKILL)
            run.kill()
        pid = number_in(home, "pid")
        assert is_running(pid)
        done = cru("and now?", home=home)
        assert done.code == 0 and not is_running(pid) and bystander.poll() is None
        told = texts(model.requests[-1].body)
    text = "is lost (what it had started ran on, and was ended now: "
    assert text in done.err and f"sleep ({pid})" in done.err
    assert "what it had started ran on, and was ended now: " in told
    bystander.kill()
    bystander.wait()


def records(home: HomeDir) -> list[str]:
    return [file.read_text() for file in home.context().glob("tasks/*/task.json")]


def test_a_command_that_is_to_outlive_the_session_needs_a_rule_or_a_person(home: HomeDir) -> None:
    call = background("echo $$ >pid; exec sleep 60", detached=True)
    with server([Reply(calls=[call]), Reply("no")]) as model:
        home.configure(url=model.url)
        done = cru("-t", "go", home=home)
        assert done.code == 0
        refused = texts(model.requests[-1].body)
    assert "the command would go on when cru has ended (`detached`)" in refused
    assert "[permissions] allow" in refused and "`-t`" not in refused
    assert number_in(home, "pid") == 0


def test_with_a_rule_it_outlives_the_session_which_says_so(home: HomeDir) -> None:
    call = background("echo $$ >pid; exec sleep 60", detached=True)
    waits = Call("bash", {"command": "until [ -s pid ]; do sleep 0.01; done"})
    with server([Reply(calls=[call, waits]), Reply("done")]) as model:
        home.configure('[permissions]\nallow = ["bash:echo $$ >pid; exec sleep 60"]\n', model.url)
        done = cru("-t", "go", home=home)
    pid = number_in(home, "pid")
    try:
        assert done.code == 0 and f"goes on as process {pid}: echo" in done.err
        assert is_running(pid)
        (row,) = json.loads(cru("tasks", "--json", home=home).out)
        assert (row["status"], row["pid"], row["detached"]) == ("running", pid, True)
        assert f"(process {pid})" in cru("tasks", home=home).out
        ended = cru("tasks", "cancel", row["id"], home=home)
        assert (ended.code, ended.out) == (0, f"task {row['id']}: cancelled\n")
        assert not is_running(pid)
    finally:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def test_another_process_sees_and_ends_a_command(home: HomeDir) -> None:
    calls = [background("seq 1 30000; echo $$ >pid; sleep 60"), Call("bash", {"command": "sleep 60"})]
    with server([Reply(calls=calls)]) as model:
        home.configure(url=model.url)
        with start("-t", "go", home=home) as run:
            wait_until(lambda: number_in(home, "pid") > 0)
            (row,) = json.loads(cru("tasks", "--json", home=home).out)
            shown = cru("tasks", "show", row["id"], home=home).out
            ended = cru("tasks", "cancel", row["id"], home=home)
            assert not is_running(number_in(home, "pid"))
            run.interrupt()
            run.wait()
        followed = cru("tasks", "follow", row["id"], home=home)
    assert "bytes before this are in" in shown and shown.endswith("29999\n30000\n")
    assert (ended.code, ended.out) == (0, f"task {row['id']}: cancelled\n")
    assert followed.code == 1 and "\n30000\n\ncancelled" in followed.out


def test_rules_hold_for_what_is_typed_into_a_command(home: HomeDir) -> None:
    (home.project / "kept").touch()
    typed = iter(["rm kept", "echo $$ >pid"])

    def script(request: Received) -> Reply:
        record = next(home.context().glob("tasks/*/task.json"), None)
        if record is None:
            return Reply(calls=[background("sh", stdin=True)])
        text = next(typed, "")
        return Reply(calls=[Call("bash", {"command": text, "input_to": record.parent.name})]) if text else Reply("done")

    with server(script) as model:
        home.configure('[permissions]\ndeny = ["bash:rm *"]\n', model.url)
        done = cru("-t", "go", home=home)
        assert done.code == 0, done.err
        assert "the rule `bash:rm *`" in texts(model.requests[2].body)
    assert (home.project / "kept").exists()


def test_a_hook_for_commands_hears_what_is_typed(home: HomeDir) -> None:
    (home.project / "kept").touch()
    guard = "grep -q '\"command\": *\"rm' && { echo 'no removing' >&2; exit 2; }; exit 0"
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": guard}]}
    settings = home.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))

    def script(request: Received) -> Reply:
        record = next(home.context().glob("tasks/*/task.json"), None)
        if record is None:
            return Reply(calls=[background("sh", stdin=True)])
        if "no removing" in texts(request.body):
            return Reply("done")
        return Reply(calls=[Call("bash", {"command": "rm kept", "input_to": record.parent.name})])

    with server(script) as model:
        home.configure('[hooks]\ndialects = ["claude"]\n', model.url)
        done = cru("-t", "go", home=home)
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert (home.project / "kept").exists()


def test_a_question_about_input_names_who_gets_it_and_shows_what_waits_in_front(home: HomeDir) -> None:
    def script(request: Received) -> Reply:
        results = sum(message["role"] == "tool" for message in request.body["messages"])
        if not results:
            return Reply(calls=[background("cat >typed", stdin=True)])
        task = next(home.context().glob("tasks/*/task.json")).parent.name
        texts = ["echo one \\", "two"]
        if results > len(texts):
            return Reply("all done")
        return Reply(calls=[Call("bash", {"command": texts[results - 1], "input_to": task})])

    with server(script) as model:
        home.configure('[permissions]\nallow = ["bash:echo *", "bash:cat *", "input_to:psql *"]\n', model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("go")
            terminal.expect("cat >typed")
            terminal.expect("no > ")
            terminal.send("y\n")
            terminal.expect("this is typed into `cat >typed`, which a rule `input_to:…` may allow")
            terminal.expect("no > ")
            terminal.send("y\n")
            terminal.expect("no > ")
            terminal.expect_screen("two")
            terminal.expect_screen("n no >")
            terminal.send("y\n")
            terminal.expect("all done")
            terminal.expect("> ")
            assert "names no tool" not in terminal.text
            wait_until(lambda: (home.project / "typed").read_text() == "echo one \\\ntwo\n")
            terminal.eof()
