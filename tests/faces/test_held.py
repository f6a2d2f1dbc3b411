"""Two processes: one context is one process's, two contexts are independent."""

from __future__ import annotations

import pytest
from tests.kit import Call, Hang, HomeDir, Received, Reply, Step, cru, server, start


def hang_on_first(request: Received) -> Step:
    return Hang("so far") if "first" in request.body["messages"][-1]["content"] else Reply("answer")


def test_the_error_names_the_holder_and_nothing_is_logged(home: HomeDir) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            before = home.log()
            run = cru("second", home=home)
            assert run.code == 4 and run.out == "" and "Traceback" not in run.err
            assert f"in use by process {first.pid} on " in run.err and "(cru -C default)" in run.err
            assert "resume" not in run.err and home.log() == before


def test_two_contexts_run_side_by_side(home: HomeDir) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            assert cru("-C", "other", "second", home=home).out == "answer\n"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "words",
    [
        ("-a",),
        ("-A", "default"),
        ("-Z", "default"),
        ("-z",),
        ("-r", "x"),
        ("-R", "default", "x"),
        ("-y", "x"),
        ("-Y", "default", "x"),
        ("-u", "x"),
        ("-m", "mock"),
        ("-M", "default", "mock"),
        ("-D", "default"),
        ("-P", "update_todos", '{"content": "x"}'),
        ("--resume",),
    ],
)
def test_whatever_changes_a_context_finds_it_held(home: HomeDir, words: tuple[str, ...]) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            run = cru(*words, home=home)
            assert run.code == 4 and f"process {first.pid}" in run.err


@pytest.mark.parametrize("words", [("-l",), ("-L",), ("-g", "0"), ("-n", "todos"), ("trace",), ("trace", "--next")])
def test_looking_needs_no_lock(home: HomeDir, words: tuple[str, ...]) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            run = cru(*words, home=home)
            assert run.code == 0 and run.out and run.err == ""


def test_listings_mark_who_is_active_and_who_was_killed(home: HomeDir) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            assert cru("-L", home=home).out == "* default [active]\n"
            first.kill()
            first.wait()
            assert cru("-L", home=home).out == "* default [stale]\n"


def test_a_killed_holder_holds_nothing(home: HomeDir) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            first.kill()
            first.wait()
        assert cru("-C", "default", "-a", "next", home=home).out == "answer\n"


def test_a_run_inside_a_tool_of_its_own_context_gets_the_error_not_a_deadlock(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "cru inner; echo code $?"})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        assert cru("-t", "outer", home=home).out == "ok\n"
    assert "code 4" in model.requests[1].body["messages"][-1]["content"]
