"""Signals in every state: the log is complete, the lock released, the children gone, and the way to resume is told."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import msgspec
import pytest
from tests.kit import Call, Done, Hang, HomeDir, Reply, Started, Status, cru, pty, server, start, wait_until
from tests.kit.scripts import cru_word

pytestmark = pytest.mark.real_start

CHILDREN = "sh -c 'sleep 60 & echo $! >grandchild; wait' & echo $! >child; wait"


def number_in(path: Path) -> int:
    return int(path.read_text().strip() or 0) if path.exists() else 0


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def ended_well(home: HomeDir, done: Done) -> None:
    """What holds after every interruption."""
    assert "Traceback" not in done.err
    assert done.err.endswith(("resume with: cru -C default --resume\n", "resume with: cru -t -C default --resume\n"))
    last = home.log()[-1]
    assert last["entry_type"] == "leg_ended" and last["metadata"]["cause"] == "interrupted"
    assert not (home.context() / ".lock").exists()


@pytest.mark.slow
def test_while_the_model_answers_the_text_so_far_is_kept(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("the rest")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            run.wait_for("so far")
            run.interrupt()
            done = run.wait()
        assert (done.code, done.out) == (130, "so far\n")
        ended_well(home, done)
        assert [e["content"] for e in home.log() if e["metadata"].get("partial") == "interrupted"] == ["so far"]
        assert cru("--resume", home=home).out == "the rest\n"


EXITS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
"""The exit status is 128 and the signal's number; all others end cru as they would end any program."""
KILLS = [signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU]


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [*EXITS, *KILLS])
def test_while_a_tool_runs_its_children_and_theirs_go_too(home: HomeDir, number: int) -> None:
    with server([Reply(calls=[Call("bash", {"command": CHILDREN})])]) as model:
        home.configure(url=model.url)
        with start("-t", "hi", home=home) as run:
            pids = [home.project / name for name in ("child", "grandchild")]
            wait_until(lambda: all(number_in(path) for path in pids))
            run.signal(number)
            done = run.wait()
        assert done.code == (128 + number if number in EXITS else -number)
        ended_well(home, done)
        wait_until(lambda: all(gone(number_in(path)) for path in pids))
    calls = [e["tool_call_id"] for e in home.log() if e["entry_type"] == "tool_call"]
    assert calls == [e["tool_call_id"] for e in home.log() if e["entry_type"] == "tool_result"]


def test_while_waiting_for_another_try(home: HomeDir) -> None:
    with server([Status(429, {"retry-after": "30"})]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            run.wait_for("trying again")
            run.interrupt()
            done = run.wait(20)
    assert done.code == 130
    ended_well(home, done)


def test_while_a_question_is_open(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "true"})])]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("no > ")
            terminal.key("c-c")
            assert terminal.wait() == 130
            assert "resume with: cru -C default --resume" in terminal.text
    assert home.log()[-1]["metadata"]["cause"] == "interrupted"
    assert not (home.context() / ".lock").exists()


@pytest.mark.slow
def test_while_compacting_nothing_is_said_to_be_done(home: HomeDir) -> None:
    with server([Reply("1"), Reply("2"), Hang("a summary")]) as model:
        home.configure(url=model.url)
        for text in ("a", "b"):
            cru(text, home=home)
        before = home.log()
        with start("-z", home=home) as run:
            model.wait(3)
            time.sleep(0.1)
            run.interrupt()
            done = run.wait()
    assert done.code == 130 and done.out == "" and "interrupted" in done.err
    assert home.log() == before and not (home.context() / ".lock").exists()


def test_while_the_prompt_is_read_from_a_pipe(home: HomeDir) -> None:
    with start(home=home, stdin=True) as run:
        run.write("half a pro")
        wait_until(run.has_read_all)
        run.interrupt()
        done = run.wait()
    assert (done.code, done.out, done.err) == (130, "", "cru: interrupted\n")


def test_impatience_does_not_harm_the_log(home: HomeDir) -> None:
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            run.wait_for("so far")
            run.interrupt()
            run.interrupt()
            done = run.wait()
    assert done.code == 130 and "Traceback" not in done.err
    for line in (home.context() / "context.jsonl").read_bytes().splitlines():
        msgspec.json.decode(line)
    assert cru("-L", home=home).out in ("* default\n", "* default [stale]\n")


def types(run: Started) -> list[str]:
    return [msgspec.json.decode(line)["type"] for line in run.out.encode().splitlines()]


def test_a_stop_and_a_continue_are_announced(home: HomeDir) -> None:
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("--json", "hi", home=home) as run:
            run.wait_for("so far")
            run.signal(signal.SIGTSTP)
            wait_until(lambda: Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
            assert types(run)[-1] == "session:paused"
            run.signal(signal.SIGCONT)
            run.wait_for("session:resumed")
            run.interrupt()
            assert run.wait().code == 130
    assert types(run)[-1] == "result"


@pytest.mark.slow
def test_an_interrupted_tool_is_told_to_the_model_when_resumed(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "echo >ran; sleep 60"})]), Reply("understood")]) as model:
        home.configure(url=model.url)
        with start("-t", "hi", home=home) as run:
            wait_until((home.project / "ran").exists)
            run.interrupt()
            assert run.wait().code == 130
        assert cru("--resume", home=home).out == "understood\n"
    assert "interrupted" in model.requests[1].body["messages"][-1]["content"].lower()
    assert os.path.exists(home.context())


MOVED = "setsid -f sh -c 'echo $$ >moved; exec sleep 60'; setsid sh -c 'echo $$ >below; exec sleep 60' & sleep 60"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="found by way of /proc")
def test_what_moved_into_a_session_of_its_own_goes_too(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": MOVED})])]) as model:
        home.configure(url=model.url)
        with start("-t", "hi", home=home) as run:
            pids = [home.project / name for name in ("moved", "below")]
            wait_until(lambda: all(number_in(path) for path in pids))
            run.interrupt()
            assert run.wait().code == 130
    wait_until(lambda: all(gone(number_in(path)) for path in pids))


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_what_is_ignored_from_the_start_stays_ignored(home: HomeDir, tmp_path: Path, number: int) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text(f'#!/bin/sh\ntrap "" {number}\nexec {cru_word()} "$@"\n')
    deaf.chmod(0o755)
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home, script=deaf) as run:
            run.wait_for("so far")
            run.signal(number)
            run.signal(signal.SIGTERM)
            assert run.wait().code == 143


def test_a_plugin_has_its_own_alarm(home: HomeDir) -> None:
    source = (
        "import signal\nfrom cru import on\nfrom pathlib import Path\n@on('message:received')\ndef f(ctx, event):\n"
        "    signal.signal(signal.SIGALRM, lambda *_: Path('rang').touch())\n    signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
    )
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "alarm.py").write_text(source)
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            run.wait_for("so far")
            wait_until((home.project / "rang").exists)
            run.signal(signal.SIGTERM)
            done = run.wait()
    assert done.code == 143
    ended_well(home, done)


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_while_the_session_says_good_bye(home: HomeDir, number: int) -> None:
    source = (
        "import cru\nasync def teardown(cru):\n"
        "    await cru.shell.exec('sh', ['-c', 'echo $$ >child; exec sleep 60'])\n"
    )
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "slow.py").write_text(source)
    with server([Reply("fine")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            wait_until(lambda: number_in(home.project / "child"))
            run.signal(number)
            done = run.wait()
    assert done.code == (143 if number == signal.SIGTERM else -number) and done.out == "fine\n"
    wait_until(lambda: gone(number_in(home.project / "child")))


@pytest.mark.slow
@pytest.mark.parametrize("is_late", [False, True])
def test_while_the_loop_waits_for_a_computation(home: HomeDir, is_late: bool) -> None:
    source = "cru.on('message:received', function() cru.fs.write('begun', 'x') cru.oq.query({1}, '[range(100000000)]|length') end)"
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "counting.lua").write_text(source)
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            wait_until((home.project / "begun").exists)
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
            wait_until(lambda: not is_late or children.read_text())
            run.signal(signal.SIGINT)
            done = run.wait()
    assert done.code == 130 and "cru.oq.query: interrupted" in done.err
    ended_well(home, done)
