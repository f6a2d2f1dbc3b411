"""`--idempotency-key` and CRU_END_WITH: what a program needs that starts runs and may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import msgspec
import pytest
from tests.kit import Hang, HomeDir, Reply, cru, kill_at, server, start, wait_until
from tests.kit.run import program

KEY = "--idempotency-key"


def test_the_same_command_again_gives_the_answer_again(home: HomeDir) -> None:
    with server([Reply("the answer")]) as model:
        home.configure(url=model.url)
        first = cru(KEY, "k", "what?", home=home)
        again = cru(KEY, "k", "what?", home=home)
        assert len(model.requests) == 1, again.err
    assert (first.code, first.out, again.code, again.out) == (0, "the answer\n", 0, "the answer\n")


def test_after_a_kill_the_same_command_goes_on(home: HomeDir) -> None:
    with server([Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        with start(KEY, "k", "the question", home=home) as run:
            assert kill_at(run, lambda: len(model.requests) == 1)
        assert cru(KEY, "k", "the question", home=home).out == "answer\n"
    assert [e["content"] for e in home.log() if e.get("role") == "user"] == ["the question"]


def test_a_request_in_json_may_have_a_key(home: HomeDir) -> None:
    request = {"command": {"send_prompt": {"prompt": "hi"}}, "flags": {"idempotency_key": "k"}}
    with server([Reply("hello")]) as model:
        home.configure(url=model.url)
        runs = [cru("--json-config", home=home, input=msgspec.json.encode(request)) for _ in range(2)]
        assert len(model.requests) == 1
    results = [msgspec.json.decode(run.out.splitlines()[-1]) for run in runs]
    assert [(r["code"], r["payload"]["response"]) for r in results] == [(0, "hello"), (0, "hello")]


@pytest.mark.parametrize(
    ("words", "text"), [((KEY, "k", "--resume"), "takes no --idempotency-key"), ((KEY, "", "hi"), "needs a text")]
)
def test_what_does_not_go_with_it_is_refused(home: HomeDir, words: tuple[str, ...], text: str) -> None:
    run = cru(*words, home=home)
    assert run.code == 2 and text in run.err


PARENT = """
import os, subprocess, sys
run = subprocess.Popen(sys.argv[1:], env={**os.environ, "CRU_END_WITH": str(os.getpid())}, start_new_session=True)
print(run.pid, flush=True)
run.wait()
"""


@pytest.mark.real_start
def test_a_run_ends_with_the_program_that_started_it_and_its_log_is_whole(home: HomeDir) -> None:
    with server([Hang()]) as model:
        home.configure(url=model.url)
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(program()), "go"], env=home.env, cwd=home.project, stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until(lambda: len(model.requests) == 1)
        parent.kill()
        parent.wait()
        parent.stdout.close()
        try:
            wait_until(lambda: any(e.get("entry_type") == "leg_ended" for e in home.log()))
            wait_until(lambda: not os.path.exists(f"/proc/{pid}/fd/0"), what="the run is gone")
        finally:
            if os.path.exists(f"/proc/{pid}/fd/0"):
                os.kill(pid, signal.SIGKILL)
    assert home.log()[-1]["metadata"]["cause"] == "interrupted"
