"""A hook that fails has no say, and the turn goes on as if it were not there."""

from __future__ import annotations

import pytest
from tests.core.plugins.executables.hooked import ERAS, ask, heard, model, plugin, results, spy
from tests.kit import HomeDir, start
from tests.kit.waiting import wait_until

from cru.core.plugins.executables.hooks.table import TABLE

TURN = """\
call: bash {"command": "seq 1 9000 | tail -n 1"}
call: write {"file_path": "a.txt", "content": "x"}
call: send_message {"to": "other", "content": "hello"}
---
text: done
"""
HANGS = 0.25
"""Seconds until one that hangs is ended: it has noted its call by then."""
FAILURES = {
    "exit": ('printf \'{"block": true, "denied": true, "prompt": "x"}\'; exit 1', "exit code 1"),
    "signal": ("kill -9 $$", "ended by SIGKILL"),
    "hang": ("sleep 60", f"ran longer than {HANGS:g} s"),
    "garbage": ("printf '\\377\\376 some text'", ""),
    "huge": ("head -c 60000000 /dev/zero | tr '\\0' x", "printed too much"),
}
LIVE = [hook.name for hook in TABLE if hook.events]


@pytest.mark.sample(1)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", [name for name in FAILURES if name != "huge"])
def test_a_failure_of_every_hook_changes_nothing(home: HomeDir, how: str, era: str) -> None:
    does, warning = FAILURES[how]
    model(home, TURN, f"[plugins.spy]\nhook_timeout = {HANGS if how == 'hang' else 30}\n")
    spy(home, era, **dict.fromkeys(LIVE, does))
    run = ask(home)
    assert run.out == "done\n"
    assert results(home)[0] == "9000" and results(home)[2].startswith("Message sent to other")
    assert (home.project / "a.txt").read_text() == "x"
    called = {one.hook for one in heard(home)}
    assert len(called) > 15
    for hook in called:
        assert (f"spy {hook}): failed on " in run.err) == bool(warning)
    assert run.err.count(warning) >= len(called) if warning else run.err == ""


@pytest.mark.slow
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


@pytest.mark.sample(3)
@pytest.mark.parametrize("how", ["exit", "hang"])
@pytest.mark.parametrize("hook", GUARDED)
def test_the_failure_of_a_guard_denies_if_its_settings_say_so(home: HomeDir, hook: str, how: str) -> None:
    does, warning = FAILURES[how]
    model(home, TURN, f'[plugins.spy]\nhook_timeout = {HANGS if how == "hang" else 30}\non_error = "deny"\n')
    plugin(home, {hook: does, "pre_message": "exit 1"})
    run = ask(home)
    assert run.out == "done\n"  # the prompt is no call, and is sent
    refused = results(home)[0 if GUARDED[hook] == "bash" else 1]
    assert refused.startswith("Refused because of an error: the handler of spy failed: ") and warning in refused


CALLS = {
    "pre_tool": 'bash {"command": "touch a.txt"}',
    "pre_file_read": 'read {"file_path": "/etc/hostname"}',
    "pre_file_write": 'write {"file_path": "a.txt", "content": "x"}',
    "pre_shell_exec": 'bash {"command": "touch a.txt"}',
    "pre_fetch_url": 'fetch {"url": "http://127.0.0.1:1/"}',
}
LEAVE = tuple(name for name in CALLS if name != "pre_tool")
# What a guard prints that was nearly a no, the hooks to which that holds, and what is said of it.
SLIPS: dict[str, tuple[tuple[str, ...], str]] = {
    '{"denied":"yes"}': (LEAVE, '`denied` of its answer is "yes", not true or false'),
    '{"denied":1}': (LEAVE, "`denied` of its answer is 1, not true or false"),
    '{"approved":"false"}': (LEAVE, '`approved` of its answer is "false", not true or false'),
    '{"Denied":true}': (LEAVE, "its answer has `Denied`, which means nothing here (did you mean `denied`?)"),
    '{"block":true}': (LEAVE, "its answer has `block`, which means nothing here (its fields are denied, approved, reason)"),
    '{"block":"true"}': (("pre_tool",), '`block` of its answer is "true", not true or false'),
    '{"blocked":true}': (("pre_tool",), "did you mean `block`?"),
    '{"denied":true}': (("pre_tool",), "its fields are block, message, arguments"),
    '{"arguments":["ls"]}': (("pre_tool",), "`arguments` of its answer is no object"),
    '{"decision":"deny"}': (tuple(CALLS), "its answer has `decision`, which means nothing here"),
    '{"continue":false}': (tuple(CALLS), "its answer has `continue`"),
    '{"denied":true,"block":tru': (tuple(CALLS), "what it printed is no JSON: "),
    '{"denied":true}{"denied":true}': (tuple(CALLS), "what it printed is no JSON: "),
    'looking\\n{"denied": true, "block": true}': (tuple(CALLS), "what it printed is no JSON: "),
    'looking\\n{"decision": "deny"}': (tuple(CALLS), '`decision`: "deny" stands in a text that it printed '),
    '[{"denied":true,"block":true}]': (tuple(CALLS), "it printed a list (an answer is one object, and nothing else)"),
}  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize(("says", "hook"), [(says, hook) for says, (hooks, _) in SLIPS.items() for hook in hooks])
def test_a_guard_that_slipped_has_failed(home: HomeDir, says: str, hook: str) -> None:
    """It is told always; `on_error` decides what it means."""
    said = SLIPS[says][1]
    plugin(home, {hook: f"printf '{says}'"})
    script = f"call: {CALLS[hook]}\n---\ntext: done\n"
    model(home, script, '[plugins.spy]\non_error = "deny"\n')
    run = ask(home)
    assert f"spy {hook}): failed on tool:before_call: " in run.err and said in run.err
    assert results(home)[0].startswith("Refused because of an error: the handler of spy failed: ")
    assert said in results(home)[0] and not (home.project / "a.txt").exists()
    lines = [one for one in home.lines("default", "journal.jsonl") if one["event"] == "tool:before_call"]
    assert [said in one["heard"][0]["error"] for one in lines] == [True]
    assert said in ask(home, "trace").out
    model(home, script)
    assert said in ask(home, "-C", "again", "hello").err and not results(home, "again")[0].startswith("Refused")


def test_a_trace_has_only_the_guards_that_the_call_concerns(home: HomeDir) -> None:
    model(home, f"call: {CALLS['pre_shell_exec']}\n---\ntext: done\n")
    plugin(home, hooks=LEAVE)
    ask(home)
    heard_of = [line for line in ask(home, "trace").out.splitlines() if "tool:before_call" in line and "→" in line]
    assert len(heard_of) == 1 and "spy pre_shell_exec: pass" in heard_of[0]
    (line,) = [one for one in home.lines("default", "journal.jsonl") if one["event"] == "tool:before_call"]
    assert len(line["heard"]) == 4  # the journal is whole


LETS = ("", "null", "{}", '{"denied":false,"block":false}', '{"approved":true}', '{"continue":true}', '{"checked":true}',
        '{"denied":null,"block":null}', "no", "[guard] looked at it")  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("hook", ["pre_tool", "pre_shell_exec"])
@pytest.mark.parametrize("says", LETS)
def test_what_says_nothing_or_lets_it_be_is_no_failure(home: HomeDir, says: str, hook: str) -> None:
    model(home, f"call: {CALLS[hook]}\n---\ntext: done\n", '[plugins.spy]\non_error = "deny"\n')
    plugin(home, {hook: f"printf '{says}'"})
    assert ask(home).err == ""
    assert (home.project / "a.txt").exists()


@pytest.mark.parametrize(("hook", "says"), [("pre_shell_exec", '{"denied":true,"Denied":1}'), ("pre_tool", '{"block":true,"x":1}'),
                                            ("pre_shell_exec", '{"denied":1,"approved":false}')])  # fmt: skip
def test_a_no_that_can_be_read_is_one_whatever_stands_beside_it(home: HomeDir, hook: str, says: str) -> None:
    model(home, f"call: {CALLS[hook]}\n---\ntext: done\n")
    plugin(home, {hook: f"printf '{says}'"})
    ask(home)
    assert results(home)[0].startswith("Blocked by spy")


def test_an_output_that_is_not_blocked_by_a_slip_is_told(home: HomeDir) -> None:
    model(home, TURN)
    plugin(home, {"pre_tool_output": {"block": "true"}, "post_tool": "echo '{torn'"})
    run = ask(home)
    assert 'failed on tool:completed: `block` of its answer is "true"' in run.err and "post_tool)" not in run.err


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
        wait_until(lambda: heard(home))
        run.interrupt()
        done = run.wait()
    assert done.code == 130 and "Traceback" not in done.err
