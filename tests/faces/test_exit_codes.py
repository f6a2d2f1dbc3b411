"""Exit codes: 0 done, 1 error, 2 usage, 3 denied or halted, 4 context held, 5 no model, 130 interrupted."""

from __future__ import annotations

import signal

import pytest
from tests.kit import Call, Hang, HomeDir, Reply, Status, cru, server, start

RESUME = "resume with: cru -C default --resume"


def test_done_is_0_also_when_a_tool_failed(home: HomeDir) -> None:
    with server([Reply(calls=[Call("read", {"file_path": "none"})]), Reply("no such file")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert (run.code, run.out, run.err) == (0, "no such file\n", "")


def test_an_error_of_the_model_is_1_and_says_how_to_resume(home: HomeDir) -> None:
    with server([Status(400, body="bad request")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert run.code == 1 and run.out == "" and "bad request" in run.err and run.err.endswith(RESUME + "\n")


def test_the_way_to_resume_names_the_model_as_given(home: HomeDir) -> None:
    with server([Status(400)]) as model:
        home.configure(url=model.url)
        run = cru("--model", "big", "hi", home=home)
    assert run.err.endswith("resume with: cru --model big -C default --resume\n")


def test_the_way_to_resume_names_home_and_project_as_given(home: HomeDir) -> None:
    other = home.path / "an other"
    run = cru("--home", str(other), "-C", "w", "hi", home=home)
    assert run.err.endswith(f"resume with: cru --home '{other}' -C w --resume\n")


@pytest.mark.parametrize("words", [("--nope",), (), ("-c", "a/b"), ("-g", "x"), ("trace", "x"), ("--home", "", "x")])
def test_usage_is_2(home: HomeDir, words: tuple[str, ...]) -> None:
    run = cru(*words, home=home)
    assert run.code == 2 and run.out == "" and run.err.startswith("cru: ")


def test_out_of_fuel_is_halted_and_3(home: HomeDir) -> None:
    with server([Reply(calls=[Call("ls", {})])] * 2) as model:
        home.configure("fuel = 1\n", url=model.url)
        run = cru("hi", home=home)
    assert run.code == 3 and "cru: out of budget: this prompt has cost" in run.err and "resume" not in run.err


def test_a_held_context_is_4(home: HomeDir) -> None:
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as first:
            first.wait_for("so far")
            assert cru("me too", home=home).code == 4


def test_no_model_is_5_and_says_how_to_get_one(home: HomeDir) -> None:
    run = cru("--model", "openai:gpt-5", "hi", home=home)
    assert run.code == 5 and "OPENAI_API_KEY" in run.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_are_128_and_their_number(home: HomeDir, number: int, code: int) -> None:
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            run.wait_for("so far")
            run.signal(number)
            done = run.wait()
    assert done.code == code and done.out == "so far\n" and done.err == f"cru: interrupted\n{RESUME}\n"
