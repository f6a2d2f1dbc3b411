"""The plugins that come with cru, through the real command: off by default, and each as its page says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Call, Done, HomeDir, Received, Reply, Script, Status, cru, home, pty, server, start

from cru.core.base.values.messages import Usage

BUNDLED = Path(__file__).parents[2] / "src/cru/core/base/bundled" / "plugins"
NAMES = ("auto-title", "context-monitor", "plan-mode", "ralph-loop", "todo-enforcer")
TAG = "<promise>DONE</promise>"
LIST = Call("update_todos", {"content": "- [x] read\n- [ ] write\n"})
WORK = Call("ls", {})
NOBODY = "[Nobody can answer. Decide for yourself and continue, and say what you assumed.]"
DONE_LIST = Call("update_todos", {"content": "- [x] read\n- [x] write\n"})


def on(name: str, *lines: str) -> str:
    return "\n".join([f"[plugins.{name}]", "enabled = true", *lines, ""])


def at(tmp_path: Path, url: str, config: str, plugin: str = "") -> HomeDir:
    here = home(tmp_path, url=url, config=config)
    if plugin:
        (here.cru / "plugins").mkdir()
        (here.cru / "plugins" / "own.lua").write_text(plugin)
    return here


def run(
    tmp_path: Path, steps: Script, config: str, *argv: str, plugin: str = ""
) -> tuple[Done, HomeDir, list[Received]]:
    with server(steps) as model:
        here = at(tmp_path, model.url, config, plugin)
        done = cru(*(argv or ("go",)), home=here)
    return done, here, model.requests


def said(request: Received) -> str:
    """What the model was told last."""
    return str(request.body["messages"][-1]["content"])


def state(here: HomeDir, key: str) -> Any:
    path = here.context() / "plugin-state.json"
    return msgspec.json.decode(path.read_bytes()).get(key) if path.exists() else None


def seed(here: HomeDir, **values: Any) -> None:
    """State as an earlier run left it."""
    here.context().mkdir(parents=True, exist_ok=True)
    named = {key.replace("_", "-"): value for key, value in values.items()}
    (here.context() / "plugin-state.json").write_bytes(msgspec.json.encode(named))


# all of them ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_their_own_tests_pass(tmp_path: Path, name: str) -> None:
    done = cru("plugin", "test", str(BUNDLED / name), home=home(tmp_path))
    assert (done.code, "0 failed" in done.out) == (0, True), done


def test_they_are_off_until_somebody_turns_them_on(tmp_path: Path) -> None:
    config = "context_window_limit = 300\n"
    done, here, requests = run(tmp_path, [Reply("- [ ] open")], config, plugin="cru.log('debug', 'of the user')\n")
    assert (done.code, done.out, done.err, len(requests)) == (0, "- [ ] open\n", "", 1)
    assert state(here, "auto-title") is None
    listed = cru("plugin", "list", home=here).out
    for name in NAMES:
        [line] = [one for one in listed.splitlines() if one.startswith(name)]
        assert "disabled" in line


@pytest.mark.parametrize("name", NAMES)
def test_their_page_has_every_setting_with_its_default(name: str) -> None:
    defaults = (BUNDLED / name / "init.lua").read_text().partition("local defaults = {")[2].partition("\n}")[0]
    page = (BUNDLED.parents[5] / "docs" / "bundled-plugins.md").read_text()
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", section, re.MULTILINE))
    found = dict(re.findall(r"^  (\w+) = ([^,\[\n]+|\[\[)", defaults, re.MULTILINE))
    assert found
    assert rows.keys() == found.keys()
    texts = ("prompt", "go")  # their defaults are too long for a table
    assert {k: v for k, v in rows.items() if k not in texts} == {k: v for k, v in found.items() if k not in texts}


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        ("todo-enforcer", 'max = "many"', "max: expected number, got string"),
        ("todo-enforcer", "countdown = 60", "countdown: must be <= 15, got 60"),
        ("ralph-loop", "tag = 5", "tag: expected string, got number"),
        ("ralph-loop", "max = -1", "max: must be 0 or more, got -1"),
        ("plan-mode", "prompt = []", "prompt: expected string, got table"),
        ("auto-title", "wait = true", "wait: expected number, got boolean"),
        ("context-monitor", "first = 90", "first must be less than second"),
    ],
)
def test_a_wrong_setting_is_told_and_the_turn_goes_on_without_the_plugin(
    tmp_path: Path, name: str, line: str, problem: str
) -> None:
    done, _, requests = run(tmp_path, [Reply("- [ ] open")], on(name, line))
    assert (done.code, len(requests)) == (0, 1)
    assert f"plugin {name} is not loaded" in done.err
    assert f"[plugins.{name}] {problem}" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_setting_is_warned_about(tmp_path: Path, name: str) -> None:
    done, *_ = run(tmp_path, lambda _: Reply("fine"), on(name, "nonsense = 1"))
    assert done.code == 0
    assert f"[plugins.{name}] nonsense: no such setting" in done.err


# todo-enforcer --------------------------------------------------------------------------------------------------------------------

ENFORCER = on("todo-enforcer")


def test_the_enforcer_goes_on_until_the_list_is_done(tmp_path: Path) -> None:
    steps = [
        Reply(calls=[LIST]),
        Reply("half of it"),
        Reply(calls=[WORK]),
        Reply(calls=[DONE_LIST]),
        Reply("all of it"),
    ]
    done, _, requests = run(tmp_path, steps, ENFORCER)
    assert (done.code, done.out, len(requests)) == (0, "half of it\nall of it\n", 5)
    assert "1 of 2 done" in said(requests[2])
    assert "- [ ] write" in said(requests[2])
    assert "- [ ] read" not in said(requests[2])
    assert "goes on in" not in done.err  # nobody sits at a terminal: no countdown


def test_the_enforcer_reads_the_reply_too_and_stops_without_progress(tmp_path: Path) -> None:
    done, _, requests = run(tmp_path, lambda _: Reply("- [ ] still open"), ENFORCER)
    assert (done.code, len(requests)) == (3, 4)
    why = "gave up: todo-enforcer: no progress: the same todos are open after 3 reminders; open: still open"
    assert done.err.splitlines()[-1] == f"cru: {why}"


def test_the_enforcer_stops_at_its_limit(tmp_path: Path) -> None:
    asked = 0

    def rule(_: Received) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(f"- [ ] step {asked}")

    done, _, requests = run(tmp_path, rule, on("todo-enforcer", "max = 2"))
    assert (done.code, len(requests)) == (3, 3)
    why = "out of budget: todo-enforcer: 2 continuations, 0 of 1 todos done; open: step 3"
    assert done.err.splitlines()[-1] == f"cru: {why}"


@pytest.mark.parametrize(
    ("config", "argv", "steps"),
    [
        ("", ("--mode", "plan", "go"), [Reply("- [ ] a")]),
        ("", ("go",), [Reply(calls=[LIST]), Status(400)]),
    ],
)
def test_the_enforcer_leaves_plans_and_errors_alone(
    tmp_path: Path, config: str, argv: Sequence[str], steps: Script
) -> None:
    _, here, requests = run(tmp_path, steps, ENFORCER, *argv)
    assert len(requests) == len(steps)  # type: ignore[arg-type]
    assert [e for e in here.log() if e.get("metadata", {}).get("source") == "continuation"] == []


EMPTY_LIST = Call("update_todos", {"content": ""})


@pytest.mark.parametrize("claim", [DONE_LIST, EMPTY_LIST], ids=["ticked", "emptied"])
def test_a_list_that_is_done_without_work_is_refused_once_and_then_given_up(tmp_path: Path, claim: Call) -> None:
    steps = [Reply(calls=[LIST]), Reply(calls=[claim]), Reply(calls=[claim]), Reply("all of it")]
    done, here, requests = run(tmp_path, steps, ENFORCER)
    refused, taken = [entry["content"] for entry in here.log() if entry["entry_type"] == "tool_result"][1:]
    assert "nothing was done in this turn: do the work first" in refused and "refused" not in taken
    assert (done.code, len(requests)) == (3, 4)
    why = "gave up: todo-enforcer: todos were ticked off or removed, but nothing was done in this turn"
    assert done.err.splitlines()[-1] == f"cru: {why}"


def test_a_reply_that_ticks_what_it_did_not_do_is_asked_once(tmp_path: Path) -> None:
    claim = Reply("- [x] port it")
    done, _, requests = run(tmp_path, [Reply("- [ ] port it"), claim, claim], ENFORCER)
    assert (done.code, len(requests)) == (3, 3) and "nothing was done in this turn" in said(requests[2])
    (tmp_path / "2").mkdir()
    done, _, requests = run(tmp_path / "2", [Reply("- [ ] port it"), claim, Reply(calls=[WORK]), claim], ENFORCER)
    assert (done.code, len(requests), done.err) == (0, 4, "")


def test_work_before_a_list_lets_it_be_ticked(tmp_path: Path) -> None:
    steps = [Reply(calls=[LIST]), Reply(calls=[WORK]), Reply(calls=[DONE_LIST]), Reply("all of it")]
    done, _, requests = run(tmp_path, steps, ENFORCER)
    assert (done.code, done.err, len(requests)) == (0, "", 4)


def test_a_question_that_nobody_can_answer_is_answered_once(tmp_path: Path) -> None:
    steps = [Reply("- [ ] port it\nWhich way?"), Reply("- [ ] port it\nI take the left one. Is that well?")]
    done, here, requests = run(tmp_path, steps, ENFORCER)
    assert (done.code, len(requests)) == (3, 2)
    assert said(requests[1]) == NOBODY
    last = "needs a person: todo-enforcer: the agent asks: I take the left one. Is that well?; open: port it"
    assert done.err.splitlines()[-1] == f"cru: {last}"
    outcome = here.log()[-1]["metadata"]["outcome"]
    assert (outcome["kind"], outcome["open"]) == ("needs_person", ["port it"])


def test_after_an_assumption_the_work_goes_on_to_its_end(tmp_path: Path) -> None:
    steps = [Reply("- [ ] port it\nWhich way?"), Reply(calls=[WORK]), Reply("I took the left one.\n- [x] port it")]
    done, _, requests = run(tmp_path, steps, ENFORCER)
    assert (done.code, len(requests), done.err) == (0, 3, "")


@pytest.mark.slow
def test_the_enforcer_gives_the_list_again_after_a_compaction(tmp_path: Path) -> None:
    config = "auto_compact = true\nauto_compact_threshold = 50\ncontext_window_limit = 8000\n" + ENFORCER

    def rule(request: Received) -> Reply:
        return Reply("is it?" if "tools" in request.body else "a summary")

    with server(rule) as model:
        here = at(tmp_path, model.url, config)
        for number in range(6):
            assert cru(f"{number} " + "word " * 900, home=here).code == (3 if number else 0)  # the todo stays open
            (here.context() / "todos.md").write_text("- [ ] write the page\n")
    compacted = [n for n, one in enumerate(model.requests) if "tools" not in one.body]
    assert compacted
    assert "Your todos are not done yet: 0 of 1 done" in str(model.requests[compacted[0] + 1].body["messages"])


def test_ctrl_c_in_the_countdown_stops_the_enforcer_and_nothing_else(tmp_path: Path) -> None:
    config = on("todo-enforcer", "countdown = 10")
    with server([Reply("- [ ] open"), Reply("thank you")]) as model:
        here = at(tmp_path, model.url, config)
        with pty(home=here) as terminal:
            terminal.expect("> ")
            terminal.line("go")
            terminal.expect("todo-enforcer: goes on in 10 s, Ctrl-C stops it")
            terminal.key("c-c")
            terminal.expect("> ")
            (here.context() / "todos.md").write_text("")
            terminal.line("is it over?")
            terminal.expect("thank you")
            assert terminal.eof() == 0
    assert len(model.requests) == 2


def test_the_countdown_of_the_enforcer_ends_with_the_reminder(tmp_path: Path) -> None:
    with server([Reply("- [ ] open"), Reply("- [x] open")]) as model:
        with pty(home=at(tmp_path, model.url, on("todo-enforcer", "countdown = 0.2"))) as terminal:
            terminal.expect("> ")
            terminal.line("go")
            terminal.expect("goes on in 0.2 s")
            terminal.expect("[x] open")
            assert terminal.eof() == 0
    assert "0 of 1 done" in said(model.requests[1])


def test_ctrl_c_in_the_countdown_of_a_single_run_ends_it_with_the_log_whole(tmp_path: Path) -> None:
    with server([Reply("- [ ] open")]) as model:
        here = at(tmp_path, model.url, on("todo-enforcer", "countdown = 10"))
        with pty("go", home=here) as terminal:
            terminal.expect("goes on in 10 s")
            terminal.key("c-c")
            assert terminal.wait() == 130
    assert here.log()[-1]["entry_type"] == "leg_ended"


# ralph-loop -----------------------------------------------------------------------------------------------------------------------

RALPH = on("ralph-loop", "evidence = false")  # its models only talk
STARTER = """
cru.once("session:started", function() require("ralph-loop").start("port the parser", { max = 5 }) end)
"""
LOOP = {"prompt": "port the parser", "tag": TAG, "max": 100, "iteration": 3, "failed": 0, "at": 0}


def test_the_loop_goes_on_until_the_tag_is_said_for_real(tmp_path: Path) -> None:
    steps = [Reply("one"), Reply(f"I shall say `{TAG}`"), Reply(f"```\n{TAG}\n```"), Reply(f"It works. {TAG}")]
    done, here, requests = run(tmp_path, steps, RALPH, "/ralph port the parser")
    assert (done.code, len(requests)) == (0, 4)
    assert "port the parser" in said(requests[0])
    assert TAG in said(requests[0])
    assert "Turn 2 of 100" in said(requests[1])
    assert "ralph-loop: complete after 4 of 100 turns" in done.err
    assert state(here, "ralph-loop") is None


def test_a_promise_counts_only_after_something_was_done(tmp_path: Path) -> None:
    config = on("ralph-loop")
    done, _, requests = run(tmp_path, [Reply(TAG), Reply(TAG)], config, "/ralph port the parser")
    assert (done.code, len(requests)) == (3, 2) and "but nothing was done yet" in said(requests[1])
    why = "gave up: ralph-loop: the agent said twice that it is done, and did nothing after 2 of 100 turns; open: port the parser"
    assert done.err.splitlines()[-1] == f"cru: {why}"
    (tmp_path / "2").mkdir()
    done, _, requests = run(tmp_path / "2", [Reply(TAG), Reply(calls=[WORK]), Reply(TAG)], config, "/ralph port it")
    assert (done.code, len(requests)) == (0, 3) and "complete after 2 of 100 turns" in done.err


def test_other_plugins_may_start_the_loop(tmp_path: Path) -> None:
    asked = 0

    def rule(_: Received) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(f"step {asked}")

    done, _, requests = run(tmp_path, rule, RALPH, plugin=STARTER)
    assert (done.code, len(requests)) == (3, 5)
    last = "out of budget: ralph-loop: the limit is reached after 5 of 5 turns; open: port the parser"
    assert done.err.splitlines()[-1] == f"cru: {last}"


def test_the_loop_stops_without_progress(tmp_path: Path) -> None:
    done, _, requests = run(tmp_path, lambda _: Reply("the same"), on("ralph-loop", "no_progress = 2"), plugin=STARTER)
    assert (done.code, len(requests)) == (3, 3)
    last = "gave up: ralph-loop: no progress after 3 of 5 turns; open: port the parser"
    assert done.err.splitlines()[-1] == f"cru: {last}"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/ralph", "usage: /ralph PROMPT"),
        ("/ralph go --max two", "--max: a whole number from 1, not two"),
        ("/ralph do it --mx 3", "--mx is unknown; did you mean --max?"),
        ("/ralph again --max=2 --tag", "--tag needs a value"),
        ("/ralph status", "no loop is under way"),
        ("/ralph stop", "no loop is under way"),
    ],
)
def test_the_command_says_what_it_cannot_do(tmp_path: Path, command: str, shown: str) -> None:
    done, _, requests = run(tmp_path, [], RALPH, command)
    assert shown in done.out + done.err
    assert "Traceback" not in done.err
    assert requests == []


def test_a_killed_loop_goes_on_with_resume(tmp_path: Path) -> None:
    answers = [Reply("one"), Reply("two", delay=30), Reply("two"), Reply(TAG)]
    with server(answers) as model:
        here = at(tmp_path, model.url, RALPH)
        with start("/ralph port the parser", home=here) as running:
            running.wait_for("one")
            model.wait(2)
            running.kill()
            running.wait()
        assert state(here, "ralph-loop")["iteration"] == 1
        done = cru("--resume", home=here)
    assert (done.code, done.out) == (0, f"two\n{TAG}\n")
    assert "ralph-loop: a loop is under way and goes on, 1 of 100 turns are done" in done.err
    assert "Turn 3 of 100" in said(model.requests[3])
    assert state(here, "ralph-loop") is None


def test_a_loop_that_was_killed_in_its_countdown_goes_on_with_resume(tmp_path: Path) -> None:
    with server([Reply("one"), Reply(TAG)]) as model:
        here = at(tmp_path, model.url, on("ralph-loop", "countdown = 10", "evidence = false"))
        with pty("/ralph port the parser", home=here) as terminal:
            terminal.expect("goes on in 10 s")
            os.kill(terminal.pid, signal.SIGKILL)
            assert terminal.wait() == -signal.SIGKILL
        done = cru("--resume", home=here)
    assert (done.code, len(model.requests)) == (0, 2)
    assert "ralph-loop: complete" in done.err
    assert state(here, "ralph-loop") is None


def test_the_next_prompt_of_another_run_goes_on_with_the_loop(tmp_path: Path) -> None:
    with server([Reply("well"), Reply(TAG)]) as model:
        here = at(tmp_path, model.url, RALPH)
        seed(here, ralph_loop={**LOOP, "at": int(time.time())})
        done = cru("go on", home=here)
    assert (done.code, len(model.requests)) == (0, 2)
    assert "complete after 5 of 100 turns" in done.err


def test_commands_that_only_look_say_nothing_of_a_loop_and_leave_it(tmp_path: Path) -> None:
    with server([]) as model:
        here = at(tmp_path, model.url, RALPH)
        seed(here, ralph_loop=LOOP)
        for words in (("/help",), ("lua", "=1"), ("plugin", "list"), ("/ralph status",)):
            done = cru(*words, home=here)
            assert (done.code, done.err) == (0, ""), done
    assert state(here, "ralph-loop") == LOOP


def test_limits_hold_however_they_are_written(tmp_path: Path) -> None:
    done, here, requests = run(tmp_path, lambda _: Reply("not yet"), RALPH, "/ralph again --max=2")
    assert (done.code, len(requests)) == (3, 2)
    assert "the limit is reached after 2 of 2 turns" in done.err and state(here, "ralph-loop") is None
    assert requests[0].body["messages"][-1]["content"].startswith("again\n")


@pytest.mark.parametrize("left", [LOOP, "nonsense", {"prompt": 5}, [1]])
def test_what_an_old_or_broken_loop_left_is_cleared_with_a_notice(tmp_path: Path, left: Any) -> None:
    with server([Reply("well")]) as model:
        here = at(tmp_path, model.url, RALPH)
        seed(here, ralph_loop=left)
        done = cru("hello", home=here)
    assert (done.code, done.out, len(model.requests)) == (0, "well\n", 1)
    assert "cleared" in done.err
    assert state(here, "ralph-loop") is None


def test_a_turn_that_fails_pauses_the_loop(tmp_path: Path) -> None:
    config = on("ralph-loop", "backoff = 0.01", "evidence = false")
    with server([Status(400), Reply("well"), Reply(TAG)]) as model:
        here = at(tmp_path, model.url, config)
        failed = cru("/ralph port the parser", home=here)
        assert failed.code != 0
        assert "ralph-loop: paused, 0 of 100 turns are done: your next prompt goes on with it" in failed.err
        done = cru("--resume", home=here)
    assert (done.code, len(model.requests)) == (0, 3)
    assert "ralph-loop: waits 0.01 s after an error" in done.err
    assert state(here, "ralph-loop") is None


@pytest.mark.slow
def test_five_failures_end_the_loop(tmp_path: Path) -> None:
    with server(lambda _: Status(400)) as model:
        here = at(tmp_path, model.url, RALPH)
        cru("/ralph port the parser", home=here)
        runs = [cru("--resume", home=here) for _ in range(4)]
    assert "stopped: 5 turns in a row failed" in runs[-1].err
    assert state(here, "ralph-loop") is None


def test_ctrl_c_in_the_countdown_pauses_the_loop_and_stop_ends_it(tmp_path: Path) -> None:
    config = on("ralph-loop", "countdown = 10", "evidence = false")
    with server([Reply("one"), Reply("hello to you")]) as model:
        here = at(tmp_path, model.url, config)
        with pty(home=here) as terminal:
            terminal.expect("> ")
            terminal.line("/ralph port the parser")
            terminal.expect("ralph-loop: goes on in 10 s, Ctrl-C pauses it")
            terminal.key("c-c")
            terminal.expect("ralph-loop: paused, 1 of 100 turns are done")
            terminal.expect("> ")
            terminal.line("/stop")
            terminal.expect("ralph-loop: stopped after 1 of 100 turns")
            terminal.expect("> ")
            terminal.line("hello")
            terminal.expect("hello to you")
            terminal.expect("> ")
            assert terminal.eof() == 0
    assert len(model.requests) == 2
    assert state(here, "ralph-loop") is None


# plan-mode ------------------------------------------------------------------------------------------------------------------------

PLAN = on("plan-mode")
ALLOWS = """
cru.on("tool:before_call", function() return { allow = true } end)
cru.on("permission:requested", function() return { allow = true } end)
cru.permissions.on_request(function() return { allow = true } end)
"""
WRITE = Call("write", {"file_path": "a.txt", "content": "x"})


def test_planning_only_reads_whatever_a_handler_allows(tmp_path: Path) -> None:
    steps = [Reply(calls=[WRITE, Call("bash", {"command": "touch b.txt"})]), Reply("- [ ] write a.txt")]
    done, here, requests = run(tmp_path, steps, PLAN, "/plan write a file", plugin=ALLOWS)
    assert (done.code, done.out) == (0, "- [ ] write a.txt\n")
    assert list(here.project.iterdir()) == []
    assert "write a file" in said(requests[0])
    assert "You are planning" in said(requests[0])
    assert state(here, "plan-mode") == {"planning": True, "plan": "- [ ] write a.txt"}


@pytest.mark.slow
def test_planning_goes_on_in_the_next_run_and_go_starts_the_work(tmp_path: Path) -> None:
    steps = [
        Reply("- [ ] write a.txt"),
        Reply(calls=[WRITE]),
        Reply("- [ ] write a.txt now"),
        Reply(calls=[WRITE]),
        Reply("ok"),
    ]
    with server(steps) as model:
        here = at(tmp_path, model.url, PLAN, ALLOWS)
        assert cru("/plan write a file", home=here).code == 0
        again = cru("sure?", home=here)
        assert "plan-mode: still planning" in again.err
        assert list(here.project.iterdir()) == []
        assert "write a.txt now" in cru("/plan show", home=here).out
        work = cru("/plan go", home=here)
    assert (work.code, work.out) == (0, "ok\n")
    assert (here.project / "a.txt").read_text() == "x"
    assert "- [ ] write a.txt now" in said(model.requests[3])
    assert "You are planning" not in said(model.requests[3])


def test_the_plan_words_without_a_plan(tmp_path: Path) -> None:
    with server([]) as model:
        here = at(tmp_path, model.url, PLAN)
        nothing = cru("/plan go", home=here)
        assert "there is no plan yet" in nothing.out + nothing.err
        assert "there is no plan yet" in cru("/plan show", home=here).out
        assert "only reads are possible" in cru("/plan", home=here).out
        assert "the mode is ask" in cru("/plan off", home=here).out
        assert "this is no planning" in cru("/plan off", home=here).out


# auto-title -----------------------------------------------------------------------------------------------------------------------

TITLE = on("auto-title")


def titles(request: Received) -> bool:
    return "Give a title" in said(request)


def with_title(request: Received) -> Reply:
    return Reply('{"answers": [{"other": "A day at sea"}]}') if titles(request) else Reply("ahoy")


def test_the_first_turn_gets_a_title_and_the_conversation_does_not_show_it(tmp_path: Path) -> None:
    with server(with_title) as model:
        here = at(tmp_path, model.url, TITLE)
        first = cru("let us sail", home=here)
        assert (first.code, first.out, first.err) == (0, "ahoy\n", "")
        assert state(here, "auto-title") == "A day at sea"
        assert cru("and now?", home=here).out == "ahoy\n"
    assert [titles(request) for request in model.requests] == [False, True, False]
    assert "let us sail" in said(model.requests[1])
    assert "ahoy" in said(model.requests[1])
    assert "day at sea" not in str(here.log())


def test_a_title_in_plain_words_is_one_and_the_command_shows_and_changes_it(tmp_path: Path) -> None:
    with server(lambda request: Reply('"A day at sea."' if titles(request) else "ahoy")) as model:
        here = at(tmp_path, model.url, TITLE)
        assert cru("/title", home=here).out == "no title yet: it comes after the first turn\n"
        cru("let us sail", home=here)
        assert cru("/title", home=here).out == "A day at sea\n"
        assert cru("/title Home again", home=here).out == "Home again\n"
    assert state(here, "auto-title") == "Home again"


@pytest.mark.slow
def test_after_three_tries_it_gives_up_and_says_so(tmp_path: Path) -> None:
    with server(lambda request: Status(400) if titles(request) else Reply("ahoy")) as model:
        here = at(tmp_path, model.url, TITLE)
        runs = [cru("go", home=here) for _ in range(5)]
        told = ["no title after 3 tries" in run.err for run in runs]
        assert told == [False, False, True, False, False], runs
        assert "the last try failed" in cru("/title", home=here).out
    assert [titles(request) for request in model.requests].count(True) == 3


@pytest.mark.sample(1)
@pytest.mark.parametrize("answer", [Status(400), Reply('{"answers": []}')])
def test_a_title_that_fails_is_silent(tmp_path: Path, answer: Reply | Status) -> None:
    def rule(request: Received) -> Reply | Status:
        return answer if titles(request) else Reply("ahoy")

    done, here, _ = run(tmp_path, rule, TITLE)
    assert (done.code, done.out, done.err) == (0, "ahoy\n", "")
    assert state(here, "auto-title") is None
    shutil.rmtree(here.path)
    shutil.rmtree(here.project)
    loud, *_ = run(tmp_path, rule, TITLE, "-v", "go")
    assert "auto-title: no title: " in loud.err


def test_a_slow_title_does_not_hold_the_answer_back(tmp_path: Path) -> None:
    def rule(request: Received) -> Reply:
        return Reply("late", delay=30) if titles(request) else Reply("ahoy")

    with server(rule) as model:
        with pty(home=at(tmp_path, model.url, on("auto-title", "wait = 0"))) as terminal:
            for text in ("let us sail", "and now?"):
                terminal.expect("> ")
                terminal.line(text)
                terminal.expect("ahoy")
            assert terminal.eof() == 0
    assert sum(map(titles, model.requests)) <= 1


def test_a_turn_that_fails_gets_no_title(tmp_path: Path) -> None:
    done, _, requests = run(tmp_path, [Status(400)], TITLE)
    assert done.code != 0
    assert len(requests) == 1


# context-monitor ------------------------------------------------------------------------------------------------------------------

MONITOR = "context_window_limit = 10000\nauto_compact = false\n" + on("context-monitor")


@pytest.mark.slow
def test_the_monitor_speaks_once_a_level_over_runs(tmp_path: Path) -> None:
    sizes = iter((1000, 7200, 7300, 9000, 9100))
    with server(lambda _: Reply("ok", usage=Usage(input=next(sizes), output=1))) as model:
        here = at(tmp_path, model.url, MONITOR)
        runs = [cru("go", home=here) for _ in range(5)]
    warned = [[line for line in one.err.splitlines() if "context-monitor" in line] for one in runs]
    assert [len(lines) for lines in warned] == [0, 1, 0, 1, 0]
    assert "fills 72 %" in warned[1][0]
    told = ["[The conversation fills" in said(request) for request in model.requests]
    assert told == [False, False, True, False, True]
    assert "room left" in said(model.requests[2])
    assert "what matters most" in said(model.requests[4])


def test_the_monitor_speaks_within_a_turn(tmp_path: Path) -> None:
    read = Call("glob", {"pattern": "*"})
    steps = [Reply(calls=[read], usage=Usage(input=8800, output=1)), Reply("ok", usage=Usage(input=8900, output=1))]
    done, _, requests = run(tmp_path, steps, MONITOR)
    assert (done.code, len(requests)) == (0, 2)
    assert "[The conversation fills 88 %" in str(requests[1].body["messages"])
    assert done.err.count("context-monitor") == 1


def test_the_monitor_is_silent_where_the_window_is_not_known(tmp_path: Path) -> None:
    done, *_ = run(tmp_path, [Reply("ok", usage=Usage(input=900_000, output=1))], on("context-monitor"))
    assert (done.code, done.err) == (0, "")


def test_in_a_chat_a_question_is_left_to_the_person_without_another_word(tmp_path: Path) -> None:
    with server([Reply("- [ ] port it\nWhich way?"), Reply("- [x] port it")]) as model:
        with pty(home=at(tmp_path, model.url, on("todo-enforcer", "evidence = false", "countdown = 0"))) as terminal:
            terminal.expect("> ")
            terminal.line("go")
            terminal.expect("Which way?")
            terminal.expect("> ")
            terminal.line("left")
            terminal.expect("[x] port it")
            assert terminal.eof() == 0
            assert "needs a person" not in terminal.text
    assert len(model.requests) == 2
