"""A hook that fails has no say, and the turn goes on as if it were not there."""

from __future__ import annotations

import time

import pytest
from tests.extensions.executables.hooked import ERAS, ask, heard, model, plugin, results, spy
from tests.kit import HomeDir, start

from cru.extensions.executables.hooks import TABLE

TURN = """\
call: bash {"command": "seq 1 9000 | tail -n 1"}
call: write {"file_path": "a.txt", "content": "x"}
call: send_message {"to": "other", "content": "hello"}
---
text: done
"""
FAILURES = {
    "exit": ('printf \'{"block": true, "denied": true, "prompt": "x"}\'; exit 1', "exit code 1"),
    "signal": ("kill -9 $$", "ended by SIGKILL"),
    "hang": ("sleep 60", "ran longer than 0.1 s"),
    "garbage": ("printf '\\377\\376{\"block\": tru'", ""),
    "huge": ("head -c 60000000 /dev/zero | tr '\\0' x", "printed too much"),
}
LIVE = [hook.name for hook in TABLE if hook.events]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", [name for name in FAILURES if name != "huge"])
def test_a_failure_of_every_hook_changes_nothing(home: HomeDir, how: str, era: str) -> None:
    does, warning = FAILURES[how]
    model(home, TURN, "[plugins.spy]\nhook_timeout = 0.1\n")
    spy(home, era, **dict.fromkeys(LIVE, does))
    run = ask(home)
    assert run.out == "done\n"
    assert (results(home)[0], results(home)[2]) == ("9000", "Message sent to other")
    assert (home.project / "a.txt").read_text() == "x"
    called = {one.hook for one in heard(home)}
    assert len(called) > 15
    for hook in called:
        assert (f"spy {hook}): failed on " in run.err) == bool(warning)
    assert run.err.count(warning) >= len(called) if warning else run.err == ""


def test_one_that_prints_without_end_is_cut_off(home: HomeDir) -> None:
    does, warning = FAILURES["huge"]
    model(home, TURN)
    plugin(home, {"pre_tool_output": does})
    run = ask(home)
    assert run.out == "done\n" and warning in run.err
    assert results(home)[0] == "9000"


def test_a_payload_that_no_variable_can_hold_is_skipped(home: HomeDir) -> None:
    model(home, "text: done\n")
    plugin(home, {"pre_message": {"prompt": "x"}}, name="old", era="env")
    plugin(home, {"pre_message": {}}, name="new", era="stdin")
    run = ask(home, input="long " * 30_000)
    assert [one.plugin for one in heard(home)] == ["new"]
    assert (
        "old pre_message): failed on message:received: the payload of " in run.err and "environment variable" in run.err
    )
    assert home.log()[0]["content"].startswith("hello\n\nlong long")


def test_a_plugin_that_goes_away_meanwhile_is_told(home: HomeDir) -> None:
    model(home, TURN)
    plugin(home, {"pre_message": 'rm "$0"'}, hooks=["pre_tool"])
    run = ask(home)
    assert run.out == "done\n" and "pre_tool): failed on " in run.err and "is gone" in run.err


GUARDED = {"pre_tool": "bash", "pre_shell_exec": "bash", "pre_file_write": "write"}


@pytest.mark.parametrize("how", ["exit", "hang"])
@pytest.mark.parametrize("hook", GUARDED)
def test_the_failure_of_a_guard_denies_if_its_settings_say_so(home: HomeDir, hook: str, how: str) -> None:
    does, warning = FAILURES[how]
    model(home, TURN, '[plugins.spy]\nhook_timeout = 0.1\non_error = "deny"\n')
    plugin(home, {hook: does, "pre_message": "exit 1"})
    run = ask(home)
    assert run.out == "done\n"  # the prompt is no call, and is sent
    refused = results(home)[0 if GUARDED[hook] == "bash" else 1]
    assert refused.startswith("Refused because of an error: the handler of spy failed: ") and warning in refused


def test_the_failure_of_a_guard_may_be_a_question(home: HomeDir) -> None:
    model(home, TURN, '[plugins.spy]\non_error = "ask"\n')
    plugin(home, {"pre_shell_exec": "exit 1"})
    ask(home)
    assert "nobody can be asked here" in results(home)[0]
    assert (home.project / "a.txt").read_text() == "x"


def test_each_failure_is_told_and_journalled_in_the_name_of_its_plugin(home: HomeDir) -> None:
    model(home, "text: done\n")
    for name in ("a", "b"):
        plugin(home, {"pre_message": "exit 1", "pre_api_tools": {"include": "bash"}}, name=name)
    lines = ask(home).err.splitlines()
    for name in ("a", "b"):
        assert f"cru: {name} ({home.cru}/plugins/{name} pre_message): failed on message:received: exit code 1" in lines
        assert f"cru: {name}: pre_api_tools: `include` is no list of names and is left out" in lines
    (line,) = [one for one in home.lines("default", "journal.jsonl") if one["event"] == "message:received"]
    assert [(one["owner"], one["error"]) for one in line["heard"]] == [("a", "exit code 1"), ("b", "exit code 1")]


def test_ctrl_c_ends_a_hook_and_the_turn(home: HomeDir) -> None:
    model(home, TURN)
    plugin(home, {"pre_tool": "sleep 60"})
    with start("hello", home=home) as run:
        end = time.monotonic() + 10
        while not heard(home) and time.monotonic() < end:
            time.sleep(0.01)
        run.interrupt()
        done = run.wait()
    assert done.code == 130 and "Traceback" not in done.err
