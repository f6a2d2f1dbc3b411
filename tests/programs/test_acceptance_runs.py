"""The acceptance list, second part: limits, output, providers that misbehave; and programs that do."""

from __future__ import annotations

import msgspec
import pytest
from tests.core.plugins.executables.programs import calls, program, results, script, tool
from tests.kit import Call, Drop, Hang, HomeDir, Reply, Status, Step, cru, server, start
from tests.programs.test_acceptance_chibi import prompts

# 7: limits ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "value"), [("fuel", 250), ("max_recursion_depth", 30), ("max_continuations", 100)])
def test_7_limits_are_finite_by_default(home: HomeDir, key: str, value: int) -> None:
    assert cru("-n", key, home=home).out.strip() == str(value)


def test_7_recurse_works_without_a_plugin_and_ends(home: HomeDir) -> None:
    replies = iter([Reply(calls=[Call("recurse", {"note": "again"})]), Reply("a step")] * 9)
    with server(lambda request: next(replies)) as model:
        home.configure("max_recursion_depth = 3\n", url=model.url)
        run = cru("-t", "go", home=home)
    assert run.out == "a step\n" * 4 and len(model.requests) == 8, run
    assert sum(e["metadata"].get("source") == "recurse" for e in home.log() if e["entry_type"] == "message") == 3


def test_7_a_loop_of_calls_ends_by_fuel(home: HomeDir) -> None:
    numbers = iter(range(99))
    with server(lambda request: Reply(calls=[Call("bash", {"command": f"echo {next(numbers)}"})])) as model:
        home.configure("fuel = 4\n", url=model.url)
        run = cru("-t", "go", home=home)
    assert run.code == 3 and "out of budget" in run.err and len(model.requests) == 4


def test_7_empty_replies_end(home: HomeDir) -> None:
    with server(lambda request: Reply("")) as model:
        home.configure(url=model.url)
        run = cru("go", home=home)
    assert run.code == 1 and "empty reply" in run.err and len(model.requests) < 6


def test_7_call_user_ends_the_turn(home: HomeDir) -> None:
    run = calls(home, 'call_user {"message": "over to you"}')
    assert (run.code, run.out) == (0, "over to you\n"), run


# 8: output ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["ask", "auto", "plan", "trust"])
@pytest.mark.parametrize("flags", [(), ("-v",)])
def test_8_standard_output_is_the_answer_and_nothing_else(home: HomeDir, mode: str, flags: tuple[str, ...]) -> None:
    script(home, 'call: bash {"command": "echo hi"}', "the *answer*")
    run = cru("--mode", mode, *flags, "go", home=home)
    assert (run.code, run.out) == (0, "the *answer*\n") and bool(run.err) == (bool(flags) or mode != "trust"), run


def test_8_with_json_each_line_is_one(home: HomeDir) -> None:
    script(home, "fine")
    run = cru("--json", "-v", "go", home=home)
    assert run.code == 0 and all(isinstance(msgspec.json.decode(line), dict) for line in run.out.splitlines())


def test_8_an_interrupted_run_leaves_no_lock_and_a_log_that_goes_on(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("fine")]) as model:
        home.configure(url=model.url)
        with start("first", home=home) as run:
            run.wait_for("so far")
            run.interrupt()
            assert run.wait().code == 130
        assert not (home.context() / ".lock").exists()
        assert cru("second", home=home).out == "fine\n"
    assert prompts(home) == ["first", "second"]


# 9: without a network -----------------------------------------------------------------------------------------------------------

FIRST: dict[str, tuple[Step, int]] = {
    "split chunks": (Reply("an answer – with € and 漢字", pieces=3, split=7), 1),
    "split characters": (Reply("€漢字", split=1), 1),
    "fragments of a call": (Reply(calls=[Call("bash", {"command": "echo fragments"})], pieces=1, split=5), 2),
    "a whole message": (Reply("all at once", message=True), 1),
    "too many requests": (Status(429, {"retry-after": "0"}), 2),
    "a broken server": (Status(500, {"retry-after": "0"}), 2),
    "a lost connection": (Drop(before=True), 2),
    "a reply that breaks off before its first word": (Drop(120), 2),
    "an empty reply": (Reply(""), 2),
}


@pytest.mark.parametrize("what", FIRST)
def test_9_whatever_a_provider_does_the_answer_comes(home: HomeDir, what: str) -> None:
    step, requests = FIRST[what]
    with server([step, Reply("the end")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        run = cru("go", home=home)
    expected = step.text if isinstance(step, Reply) and step.text else "the end"
    assert (run.code, run.out, len(model.requests)) == (0, f"{expected}\n", requests), run
    if what == "fragments of a call":
        assert results(home) == ["fragments"]


def test_9_a_reply_that_breaks_off_is_told_and_kept(home: HomeDir) -> None:
    with server([Drop(600, reply=Reply("word " * 100, pieces=5)), Reply("the end")]) as model:
        home.configure(url=model.url)
        run = cru("go", home=home)
        assert run.code == 1 and run.out.startswith("word ") and "resume with: cru" in run.err, run
        assert cru("--resume", home=home).out == "the end\n"
    said = [e for e in home.log() if e["entry_type"] == "message" and e["role"] == "agent"]
    assert said[0]["content"].startswith("word ") and said[0]["metadata"]["partial"] == "error"


# beside the list: programs that do not behave ------------------------------------------------------------------------------------


def test_bad_members_of_a_schema_do_not_keep_the_good_ones_out(home: HomeDir) -> None:
    good = {"name": "good", "description": "fine"}
    members = [good, 7, {"name": "good", "description": "twice"}, {"name": "bash", "description": "ours"}]
    schema = msgspec.json.encode([*members, {**good, "name": "hooked", "hooks": ["pre_toll"]}]).decode()
    program(home, "many", f"#!/bin/bash\n[[ $1 == --schema ]] && echo '{schema}' || echo $CHIBI_TOOL_NAME\n")
    run = calls(home, "good", "hooked")
    assert results(home) == ["good\n", "hooked\n"]
    for told in (
        "tool 2 is left out",
        "many has one of that name",
        "cru itself has one of that name",
        "did you mean `pre_tool`",
    ):
        assert told in run.err


@pytest.mark.slow
def test_a_plugin_that_calls_cru_on_its_own_context_is_told_at_once(home: HomeDir) -> None:
    """On another one it works."""
    tool(home, "own", "cru 'a task' </dev/null 2>&1")
    tool(home, "other", "cru -C other 'a task' </dev/null 2>&1")
    calls(home, "own", "other")
    own, other = results(home)
    assert "exit code 4" in own and "in use" in own
    assert "exit code" not in other and prompts(home, "other") == ["a task"]
