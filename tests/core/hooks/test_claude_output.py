"""What a run of one of Claude Code's hooks means: exit status, JSON, text, event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.core.hooks.claude_world import about, entry, said

from cru.core.events import payloads as p
from cru.core.events.answers import PASS, Answer, Change, Inject, allow
from cru.core.hooks.dialects.claude.dialect import DIALECT as CLAUDE
from cru.core.hooks.parsing.common import LONGEST_CONTEXT

CALL = p.ToolBeforeCall("bash", {"command": "ls", "timeout": 2}, "c1")
FILE = {"name": "deploy", "source": "projectSettings", "invoked_by": "user"}
LINE = p.ToolBeforeCall("bash", {"command": "ls"}, "c1", origin="command", prompt_file=FILE)
ASKED = p.PermissionRequested("bash", "shell", "ls", "c1", "why", {"command": "ls"})
DONE = p.ToolCompleted("bash", {"command": "ls"}, "a\nb", "c1", 12.4)
FAILED = p.ToolFailed("bash", {"command": "ls"}, "no", "failed", "c1")
BATCH = p.ToolBatchCompleted((), 10)
PROMPT = p.MessageReceived("hello")
END = p.TurnComplete("done", "text", "r")
ERROR = p.TurnComplete("error", "", "r", error="openai answered 429: slow down")
OPENED = p.SessionStarted("main", "/f")
CLOSED = p.SessionEnded("exit")
IDLE = p.SessionIdle("main")
FULL = p.ContextOverflow(9, 10, 90.0, "rolling", "prompt")
SMALLER = p.SessionCompacted("short", 5, 2)
STARTED = p.TaskSpawned("t1", "subagent", "look", agent="explore")
SWITCHED = p.ModelSelected("x", "new", "", "new", "old")
ALL: dict[str, Struct] = {
    "SessionStart": OPENED, "SessionEnd": CLOSED, "UserPromptSubmit": PROMPT, "PreToolUse": CALL, "PermissionRequest": ASKED,
    "PostToolUse": DONE, "PostToolUseFailure": FAILED, "PostToolBatch": BATCH, "Notification": IDLE, "Stop": END,
    "StopFailure": ERROR, "SubagentStart": STARTED, "SubagentStop": END,
    "PreCompact": FULL, "PostCompact": SMALLER, "PostModelSwitch": SWITCHED,
    "PreSkillShellCommand": LINE,
}  # fmt: skip
DENY, HALT = Answer(decision="deny", reason="no"), Answer(decision="deny", halt=True, reason="no")
OBJECTION = '{0}:Bash hook blocking error from command: "x": {1}'
REFUSED = "PreToolUse:Bash hook error: "


def denied(why: str) -> Answer:
    return Answer(decision="deny", reason=REFUSED + why)


def told(name: str, why: str) -> Answer:
    return Answer(context=(OBJECTION.format(name, why),))


def go_on(text: str) -> Answer:
    return Answer(inject=Inject(f"Stop hook feedback:\n{text}"))


def own(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


def test_every_event_with_a_moment_is_judged() -> None:
    assert set(ALL) == {name for name, rows in CLAUDE.events.items() if rows[0].event}


# Status 2 with `no` on stderr: (answer, to the person, whether it counts as a failure)
EXIT_2: dict[str, tuple[Answer, str, bool]] = {
    "SessionStart": (PASS, "no", False), "SessionEnd": (PASS, "no", False), "PostCompact": (PASS, "no", False),
    "PostModelSwitch": (PASS, "no", False),
    "UserPromptSubmit": (DENY, "", False), "PreToolUse": (denied("[x]: no"), "", False), "PreCompact": (DENY, "", False),
    "PostToolUse": (told("PostToolUse", "[x]: no"), "", False), "PostToolBatch": (HALT, "", False),
    "PostToolUseFailure": (told("PostToolUseFailure", "[x]: no"), "", False),
    "Stop": (go_on("[x]: no"), "", False), "SubagentStop": (go_on("[x]: no"), "", False), "SubagentStart": (PASS, "no", False),
    "PermissionRequest": (PASS, "", True), "PreSkillShellCommand": (DENY, "", False),
    "Notification": (Answer(note="exit status 2 is ignored on Notification"), "", False),
    "StopFailure": (Answer(note="exit status 2 is ignored on StopFailure"), "", False),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_exit_2(tmp_path: Path, name: str) -> None:
    answer, to_user, failed = EXIT_2[name]
    got = said(name, ALL[name], tmp_path, exit=2, err="no\n")
    assert (got.answer, got.to_user, bool(got.failed)) == (answer, to_user, failed)


@pytest.mark.parametrize("name", ALL)
def test_silence_and_success_say_nothing(tmp_path: Path, name: str) -> None:
    assert (
        said(name, ALL[name], tmp_path)
        == said(name, ALL[name], tmp_path, "{}")
        == said(name, ALL[name], tmp_path, " \n")
    )
    assert said(name, ALL[name], tmp_path).answer is PASS


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("exit", [1, 3, 49, 127, -9])
def test_any_other_status_fails_without_json(tmp_path: Path, name: str, exit: int) -> None:
    got = said(name, ALL[name], tmp_path, "words", exit=exit, err="first\nsecond")
    assert (got.answer, got.failed) == (PASS, f"exit status {exit}: first")


@pytest.mark.parametrize("name", ALL)
def test_plain_text_is_context_in_two_places_only(tmp_path: Path, name: str) -> None:
    label = {"SessionStart": "SessionStart:startup", "UserPromptSubmit": "UserPromptSubmit"}.get(name)
    wanted = (f"{label} hook success: some words",) if label else ()
    assert said(name, ALL[name], tmp_path, "\ufeffsome words\n").answer.context == wanted


@pytest.mark.parametrize("name", ALL)
def test_text_that_begins_with_a_brace_and_is_no_json_is_context_where_text_is(tmp_path: Path, name: str) -> None:
    got = said(name, ALL[name], tmp_path, "{ no json")
    if name in ("SessionStart", "UserPromptSubmit", "PostModelSwitch"):
        [context] = got.answer.context or got.deferred
        assert context.endswith("hook success: { no json") and not got.failed
    else:
        assert got.answer is PASS and "is not JSON" in got.failed


BLOCKED: dict[str, Answer] = {
    "UserPromptSubmit": DENY, "PreToolUse": denied("no"), "PreCompact": DENY, "PostToolUse": told("PostToolUse", "no"),
    "PostToolUseFailure": told("PostToolUseFailure", "no"), "PostToolBatch": HALT, "Stop": go_on("no"),
    "SubagentStop": go_on("no"), "PreSkillShellCommand": DENY,
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("exit", [0, 1, 2])
def test_a_block_by_json_whatever_the_status(tmp_path: Path, name: str, exit: int) -> None:
    got = said(name, ALL[name], tmp_path, {"decision": "block", "reason": "no"}, exit=exit, err="stderr")
    if name in BLOCKED:
        assert (got.answer, got.warning) == (BLOCKED[name], "")
    elif not (exit == 2 and name in ("Notification", "StopFailure")):
        assert got.answer is PASS and "cannot be blocked" in got.warning


CONTEXT = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "SubagentStart",
)
GOES_ON = ("Stop", "SubagentStop")


@pytest.mark.parametrize("name", ALL)
def test_additional_context(tmp_path: Path, name: str) -> None:
    got = said(name, ALL[name], tmp_path, own(hookEventName=name, additionalContext="more"))
    tool = ":Bash" if name in ("PreToolUse", "PostToolUse", "PostToolUseFailure") else ""
    label = f"{name}{tool} hook additional context: more"
    assert got.answer.context == ((label,) if name in CONTEXT else ())
    assert got.answer.inject == (Inject(label) if name in GOES_ON else None)
    assert got.deferred == ((label,) if name in ("Notification", "PostModelSwitch") else ())
    assert bool(got.warning) is (name not in (*CONTEXT, "Notification", "PostModelSwitch", *GOES_ON))


def test_context_beside_a_refusal_goes_with_its_reason(tmp_path: Path) -> None:
    out = own(permissionDecision="deny", permissionDecisionReason="no", additionalContext="more")
    got = said("PreToolUse", CALL, tmp_path, out).answer
    assert got == denied("no\nPreToolUse:Bash hook additional context: more")


@pytest.mark.parametrize("name", ALL)
def test_continue_false_is_stronger_than_anything(tmp_path: Path, name: str) -> None:
    out = {"continue": False, "stopReason": "no", "decision": "block", "reason": "other"}
    got = said(name, ALL[name], tmp_path, out)
    unstoppable = ("SessionStart", "SessionEnd", "Notification", "StopFailure", "PostToolUseFailure", "PostModelSwitch")
    if name == "SubagentStop":  # it ends the sub-agent, which has said what it had to say
        assert (got.answer, got.to_user) == (Answer(decision="deny"), "no")
    elif name in (*unstoppable, "SubagentStart"):
        assert got.to_user == "no" and "has no effect on" in got.warning and not got.answer.halt
    else:
        assert got.answer.halt and got.answer.reason == "no" and got.answer.inject is None


@pytest.mark.parametrize("name", ALL)
def test_a_message_for_the_person_and_nothing_else(tmp_path: Path, name: str) -> None:
    got = said(name, ALL[name], tmp_path, {"systemMessage": "look", "suppressOutput": True})
    assert (got.to_user, got.answer, got.warning) == ("look", PASS, "")


ODD: list[Any] = [
    "{ no json", '{"decision": "block"} and more', {"decision": "maybe"}, {"continue": "no"}, {"reason": 3}, {"systemMessage": []},
    {"hookSpecificOutput": "x"}, own(hookEventName="PostToolUse", permissionDecision="deny"), own(permissionDecision="never"),
    own(updatedInput="ls"), own(additionalContext=["a"]), own(permissionDecisionReason=1), "[" * 100_000 + "{", '{"a":' * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("out", [one for one in ODD if not str(one).startswith("[[")])
def test_json_that_does_not_fit_is_a_failure_that_still_blocks_with_status_2(tmp_path: Path, out: Any) -> None:
    got = said("PreToolUse", CALL, tmp_path, out)
    assert got.answer is PASS and got.failed
    assert said("PreToolUse", CALL, tmp_path, out, exit=1, err="oops").failed == "exit status 1: oops"
    blocked = said("PreToolUse", CALL, tmp_path, out, exit=2, err="oops")
    assert (blocked.answer, blocked.failed) == (denied("[x]: oops"), "") and blocked.warning


def test_json_behind_other_text_is_pointed_out(tmp_path: Path) -> None:
    got = said("PreToolUse", CALL, tmp_path, 'Welcome!\n{"decision": "block", "reason": "no"}')
    assert got.answer is PASS and "other text stands before it" in got.warning


# output → answer
DECISIONS: list[tuple[Any, Answer]] = [
    (own(permissionDecision="allow", permissionDecisionReason="fine"), Answer(decision="allow")),
    (own(permissionDecision="deny", permissionDecisionReason="no"), denied("no")),
    (own(permissionDecision="deny"), denied("blocked by a hook")),
    (own(permissionDecision="ask", permissionDecisionReason="sure?"), Answer(decision="ask", reason="sure?")),
    (own(permissionDecision="defer", permissionDecisionReason="later"), Answer(decision="ask", reason="later")),
    ({"decision": "approve", "reason": "x"}, Answer(decision="allow")),
    ({"decision": "approve", **own(permissionDecision="ask")}, Answer(decision="ask")),
    ({"decision": None, "hookSpecificOutput": None}, PASS),
    (own(updatedInput={"command": "echo", "timeout": 3000, "description": "d"}),
     Answer(changes=(Change("args", "set", {"command": "echo", "timeout": 3.0}),))),
    (own(permissionDecision="allow", updatedInput={"command": "x"}),
     Answer(decision="allow", changes=(Change("args", "set", {"command": "x"}),))),
    (own(permissionDecision="deny", permissionDecisionReason="no", updatedInput={"command": "x"}), denied("no")),
    ({"unknown": 1, **own(permissionDecision="allow", other=2)}, Answer(decision="allow")),
]  # fmt: skip


@pytest.mark.parametrize(("out", "answer"), DECISIONS)
def test_decisions_about_a_call(tmp_path: Path, out: Any, answer: Answer) -> None:
    got = said("PreToolUse", CALL, tmp_path, out)
    assert (got.answer, got.warning, got.failed) == (answer, "", "")
    assert said("PreToolUse", CALL, tmp_path, out, exit=1, err="x").answer == answer


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        (own(permissionDecision="allow"), "[x]: stderr"), (own(permissionDecision="deny", permissionDecisionReason="json"), "json"),
        ({"decision": "block", "reason": "json"}, "json"), ({"decision": "block"}, "stderr"), ("", "[x]: stderr"),
    ],
)  # fmt: skip
def test_json_cannot_unblock_status_2(tmp_path: Path, out: Any, reason: str) -> None:
    assert said("PreToolUse", CALL, tmp_path, out, exit=2, err="stderr\n").answer == denied(reason)


WAITS = "the hook asked for approval, which a command's text cannot wait for"
CHANGED = "the hook asked for a change, which is not made here"
# output of a hook of a `!` line → why it is not run, "" if it is
LINES: list[tuple[Any, str]] = [
    (own(permissionDecision="allow"), ""),
    (own(permissionDecision="allow", permissionDecisionReason="fine"), ""),
    ({"decision": "approve"}, ""),
    (own(permissionDecision="deny", permissionDecisionReason="no"), "no"),
    (own(permissionDecision="deny"), "blocked by a hook"),
    (own(permissionDecision="ask"), WAITS),
    (own(permissionDecision="ask", permissionDecisionReason="sure?"), f"sure?; {WAITS}"),
    (own(permissionDecision="defer"), WAITS),
    (own(updatedInput={"command": "ls"}), CHANGED),
    (own(permissionDecision="allow", updatedInput={}), CHANGED),
    (own(permissionDecision="deny", permissionDecisionReason="no", updatedInput={"command": "x"}), "no"),
    (own(updatedPermissions=[{"type": "setMode"}]), CHANGED),
    (own(decision={"behavior": "deny", "message": "no"}), "no"),
    (own(decision={"behavior": "allow", "updatedInput": {"command": "x"}}), CHANGED),
    (own(decision={"behavior": "allow"}), ""),
    ({"decision": "block", "reason": "no"}, "no"),
]


@pytest.mark.parametrize(("out", "why"), LINES)
def test_decisions_about_a_line_of_a_command(tmp_path: Path, out: Any, why: str) -> None:
    got = said("PreSkillShellCommand", LINE, tmp_path, out)
    assert got.answer == (Answer(decision="deny", reason=why) if why else PASS) and not got.failed


OTHER = Answer(decision="allow", changes=(Change("args", "set", {"command": "ls -a"}),))
# ruling → answer, what is warned of
RULINGS: list[tuple[dict[str, Any], Answer, str]] = [
    ({"behavior": "allow"}, allow(), ""),
    ({"behavior": "allow", "updatedInput": {"command": "ls"}}, allow(), ""),
    ({"behavior": "allow", "updatedInput": {"command": "ls -a", "description": "x"}}, OTHER, ""),
    ({"behavior": "allow", "updatedPermissions": []}, allow(), ""),
    ({"behavior": "deny", "message": "no", "updatedInput": 7, "updatedPermissions": 7}, DENY, "beside an allow only"),
    ({"behavior": "deny", "message": "no"}, DENY, ""),
    ({"behavior": "deny", "message": "no", "interrupt": True}, HALT, ""),
    ({"behavior": "deny"}, Answer(decision="deny", reason="blocked by a hook"), ""),
]


@pytest.mark.parametrize(("ruling", "answer", "warning"), RULINGS)
def test_a_question_is_answered(tmp_path: Path, ruling: dict[str, Any], answer: Answer, warning: str) -> None:
    got = said("PermissionRequest", ASKED, tmp_path, own(hookEventName="PermissionRequest", decision=ruling))
    assert got.answer == answer and warning in got.warning and bool(got.warning) is bool(warning)


@pytest.mark.parametrize(
    "ruling",
    [{"behavior": "ask"}, {}, "allow", {"behavior": "allow", "updatedInput": 7}, {"behavior": "allow", "updatedPermissions": [{}]}],
)  # fmt: skip
def test_a_question_is_not_answered_by_what_does_not_fit(tmp_path: Path, ruling: Any) -> None:
    got = said("PermissionRequest", ASKED, tmp_path, own(decision=ruling))
    assert got.answer is PASS and got.failed


# a tool, updatedToolOutput → the result as the model reads it
RESULTS: list[tuple[str, Any, str]] = [
    ("bash", "text", "text"), ("bash", "", ""), ("bash", {"stdout": "a\n", "stderr": "b"}, "a\nb"), ("bash", {"stdout": "a"}, "a"),
    ("read", {"file": {"content": "inside"}}, "inside"), ("read", {"content": "x", "text": "y"}, "x"),
    ("fetch", {"url": "u", "result": "r"}, "r"), ("mcp__a__b", [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}], "1\n2"),
    ("mcp__a__b", {"content": [{"type": "text", "text": "1"}]}, "1"), ("x", {"n": 1}, '{"n":1}'), ("x", [1], "[1]"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "output", "text"), RESULTS)
def test_a_replaced_result(tmp_path: Path, tool: str, output: Any, text: str) -> None:
    payload = p.ToolCompleted(tool, {}, "old", "c1")
    got = said("PostToolUse", payload, tmp_path, own(updatedToolOutput=output))
    assert got.answer == Answer(changes=(Change("result", "set", text),))


@pytest.mark.parametrize(("tool", "changed"), [("mcp__a__b", True), ("bash", False)])
def test_the_older_name_is_for_servers_only(tmp_path: Path, tool: str, changed: bool) -> None:
    got = said("PostToolUse", p.ToolCompleted(tool, {}, "old", "c1"), tmp_path, own(updatedMCPToolOutput="new"))
    assert bool(got.answer.changes) is changed and bool(got.warning) is not changed


def test_what_has_no_effect_yet_is_noted(tmp_path: Path) -> None:
    out = {"terminalSequence": "\a", **own(sessionTitle="t", watchPaths=["a"])}
    got = said("SessionStart", OPENED, tmp_path, out)
    assert (
        got.answer.note
        == "terminal_sequence has no effect yet; session_title has no effect yet; watch_paths has no effect yet"
    )


@pytest.mark.parametrize(
    ("payload", "is_chat", "inject"),
    [
        (OPENED, False, "hi"),
        (OPENED, True, ""),
        (p.ContextCleared("main"), False, ""),
        (p.SessionCompacted("short", 3, 1), False, ""),
    ],
)
def test_a_message_that_begins_a_run(tmp_path: Path, payload: Struct, is_chat: bool, inject: str) -> None:
    facts = about(tmp_path)
    facts.is_chat = lambda: is_chat
    got = said("SessionStart", payload, tmp_path, own(initialUserMessage="hi"), facts=facts)
    assert (got.answer.inject.content if got.answer.inject else "") == inject
    assert bool(got.warning) is not bool(inject)


def test_a_long_text_is_saved_and_shown_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "context").mkdir()
    just, long = "é" * LONGEST_CONTEXT, "é" * (LONGEST_CONTEXT + 1)
    assert said("UserPromptSubmit", PROMPT, tmp_path, just).answer.context == (
        f"UserPromptSubmit hook success: {just}",
    )
    for _ in range(2):
        [text] = said("UserPromptSubmit", PROMPT, tmp_path, long).answer.context
        [path] = (tmp_path / "context").rglob("*.txt")
        assert path.read_text() == long and str(path) in text and len(text) < 3000
    got = said("PreToolUse", CALL, tmp_path, exit=2, err="x" * 20_000)
    assert len(got.answer.reason) < 3000
    (tmp_path / "context" / "tool_cache").rename(tmp_path / "gone")
    (tmp_path / "context").joinpath("tool_cache").write_text("in the way")
    assert "could not be saved" in said("SessionStart", OPENED, tmp_path, long).answer.context[0]


def test_several_stop_hooks_count_once_and_the_cap_holds(tmp_path: Path) -> None:
    facts = about(tmp_path, CLAUDE_CODE_STOP_HOOK_BLOCK_CAP="2")
    injected: list[bool] = []
    for leg in range(4):
        for _ in range(3):
            payload = p.TurnComplete("done", "x", "r", continuations=leg)
            got = said("Stop", payload, tmp_path, {"decision": "block", "reason": "go"}, facts=facts, seq=leg)
            injected.append(got.answer.inject is not None)
            assert bool(got.warning) is (leg >= 2)
    assert injected == [True] * 6 + [False] * 6
    again = said("Stop", p.TurnComplete("done", "x", "r"), tmp_path, exit=2, err="go", facts=facts, seq=9)
    assert again.answer == go_on("[x]: go")


def test_an_asynchronous_hook_that_would_wake_the_agent_tells_the_model(tmp_path: Path) -> None:
    one = entry("PostToolUse").__class__
    made = one(
        **{**{f: getattr(entry("PostToolUse"), f) for f in one.__struct_fields__}, "rewake": True, "asynchronous": True}
    )
    assert said("PostToolUse", DONE, tmp_path, exit=2, err="tests fail", entry=made).answer == told(
        "PostToolUse", "[x]: tests fail"
    )


def test_context_without_a_place_waits_for_the_next_request(tmp_path: Path) -> None:
    result = said("SessionStart", SMALLER, tmp_path, "remember")
    assert result.answer is PASS and result.deferred == ("SessionStart:compact hook success: remember",)
