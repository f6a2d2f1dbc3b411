"""What commands leave running ends with the session, however that ends, and is told; only what is detached goes on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Reply, cru, kill_at, pty, server, start, wait_until
from tests.kit.processes import is_running

LEAVES = {
    "in the background": "sleep 60 >/dev/null 2>&1 & echo $! >pid",
    "in a session of its own": "setsid sh -c 'echo $$ >pid; exec sleep 60' >/dev/null 2>&1 & until [ -s pid ]; do :; done",
    "without environment, session and parents": (
        "env -i setsid sh -c '(sleep 60 & echo $! >pid) & exit' >/dev/null 2>&1; until [ -s pid ]; do :; done"
    ),
    "deaf to SIGTERM": "sh -c 'trap \"\" TERM HUP INT; echo $$ >pid; while :; do sleep 0.05; done' >/dev/null 2>&1 & "
    "until [ -s pid ]; do :; done",
}


def pid_of(home: HomeDir) -> int:
    """0: it is not written yet."""
    file = home.project / "pid"
    return int(file.read_text() or 0) if file.exists() else 0


def leaving(source: str, *then: Call) -> list[Reply]:
    calls = [Reply(calls=[Call("bash", {"command": source})])]
    return [*calls, *(Reply(calls=[call]) for call in then), Reply("done")]


WAITS = Call("bash", {"command": "sleep 60"})


@pytest.mark.slow
@pytest.mark.parametrize("source", LEAVES.values(), ids=LEAVES)
def test_it_runs_until_the_session_ends_and_that_is_told(home: HomeDir, source: str) -> None:
    looks = Call("bash", {"command": "kill -0 $(cat pid) && echo it runs"})
    with server(leaving(source, looks)) as model:
        home.configure(url=model.url)
        done = cru("-t", "go", home=home)
        assert '"content":"it runs"' in model.requests[-1].raw.decode()
    assert (done.code, done.out) == (0, "done\n")
    assert "what commands had left running ended with the session: s" in done.err and f"({pid_of(home)})" in done.err
    assert not is_running(pid_of(home))


@pytest.mark.parametrize("source", LEAVES.values(), ids=LEAVES)
def test_it_ends_if_cru_is_killed(home: HomeDir, source: str) -> None:
    with server(leaving(source, WAITS)) as model:
        home.configure(url=model.url)
        with start("-t", "go", home=home) as run:
            assert kill_at(run, lambda: len(model.requests) == 2)
            wait_until(lambda: not is_running(pid_of(home)))


@pytest.mark.sample(1)
@pytest.mark.real_start
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_ends_with_a_run_that_a_signal_ends(home: HomeDir, number: signal.Signals) -> None:
    with server(leaving(LEAVES["in a session of its own"], WAITS)) as model:
        home.configure(url=model.url)
        with start("-t", "go", home=home) as run:
            wait_until(lambda: len(model.requests) == 2)
            run.signal(number)
            assert run.wait().code == 128 + number
            assert not is_running(pid_of(home))


@pytest.mark.parametrize("way", ["end of input", "hangup", "Ctrl-C"])
def test_it_ends_with_a_chat(home: HomeDir, way: str) -> None:
    with server(leaving(LEAVES["in a session of its own"])) as model:
        home.configure(url=model.url)
        with pty("-t", home=home) as terminal:
            terminal.expect("> ")
            terminal.line("go")
            terminal.expect("done")
            terminal.expect("> ")
            assert is_running(pid_of(home))
            if way == "hangup":
                terminal.hang_up()
            else:
                terminal.send("\x03" if way == "Ctrl-C" else "")
                terminal.eof()
        wait_until(lambda: not is_running(pid_of(home)))


def test_what_a_person_runs_by_hand_ends_too(home: HomeDir) -> None:
    home.configure('model = "scripted:none"\n')
    done = cru("-P", "bash", f'{{"command": "{LEAVES["in the background"]}"}}', home=home)
    assert done.code == 0 and not is_running(pid_of(home)), done


def test_a_run_that_leaves_nothing_says_nothing(home: HomeDir, tmp_path: Path) -> None:
    with server(leaving("sleep 0.01 & wait")) as model:
        home.configure(url=model.url)
        done = cru("-t", "go", home=home)
    assert (done.code, done.out, done.err) == (0, "done\n", "")
