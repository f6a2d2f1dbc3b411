"""Codex' outputs: strict schemas, and what each event makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.dialect_world import about, event, said

from cru.core.events.answers import Answer, Change, Inject
from cru.core.events.payloads import (
    ContextOverflow,
    MessageReceived,
    PermissionRequested,
    SessionStarted,
    ToolBeforeCall,
    ToolCompleted,
    ToolFailed,
    TurnComplete,
)
from cru.core.hooks.dialects.codex.dialect import DIALECT as CODEX
from cru.core.hooks.dialects.codex.dialect import CodexStops
from cru.core.hooks.model.result import HookRun

CALL = event(ToolBeforeCall("bash", {"command": "ls"}, "call_1"))
PROMPT = event(MessageReceived("hi"))
STOP = event(TurnComplete("done", "Hi.", "m"))
DONE = event(ToolCompleted("bash", {}, "out", "c"))
ASK = event(PermissionRequested("bash", "shell", "ls", args={"command": "ls"}))


def inner(name: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, **more}}


def behaviour(**more: Any) -> dict[str, Any]:
    return inner("PermissionRequest", decision=more)


DENY = Answer(decision="deny", reason="no")


@pytest.mark.parametrize(
    ("run", "answer"),
    [
        ("", Answer()),
        ("just text", Answer()),
        ({}, Answer()),
        (HookRun(2, stderr=" no\n"), DENY),
        (inner(permissionDecision="deny", permissionDecisionReason=" no "), DENY),
        ({"decision": "block", "reason": "no"}, DENY),
        (inner(additionalContext="know"), Answer(context=("know",))),
        (
            inner(permissionDecision="allow", updatedInput={"command": "pwd", "timeout": 5000, "workdir": "/"}),
            Answer(changes=(Change("args", "set", {"command": "pwd", "timeout": 5.0}),)),
        ),
    ],
)
def test_before_a_call(run: Any, answer: Answer) -> None:
    meant = said(CODEX, "PreToolUse", CALL, run)
    assert (meant.answer, meant.failed) == (answer, "")


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (HookRun(1, stderr="bad\nworse"), "exit status 1: bad"),
        (HookRun(2), "exit status 2 without a reason"),
        ("{bad", "must be a JSON object"),
        ("[1]", "must be a JSON object"),
        ({"colour": 1}, "unknown field `colour`"),
        ({"continue": "no"}, "Expected `bool`"),
        (inner(colour=1), "unknown field `colour`"),
        (inner("Stopp"), "Invalid enum value 'Stopp'"),
        ({"hookSpecificOutput": {}}, "missing required field"),
        (inner(permissionDecision="deny"), "deny without a reason"),
        (inner(permissionDecision="deny", permissionDecisionReason="  "), "deny without a reason"),
        (inner(permissionDecision="allow"), "only together with `updatedInput`"),
        (inner(permissionDecision="ask"), "ask is not supported"),
        (inner(permissionDecision="maybe"), "Invalid enum value"),
        (inner(updatedInput={"command": "x"}), "needs permissionDecision allow"),
        (inner(permissionDecision="allow", updatedInput="x"), "`updatedInput` is not an object"),
        (inner(permissionDecisionReason="why"), "without a decision"),
        ({"decision": "approve"}, "approve is not supported"),
        ({"decision": "block"}, "block without a reason"),
        ({"reason": "why"}, "`reason` without `decision`"),
        ({"continue": False}, "`continue: false` is not supported"),
        ({"stopReason": "x"}, "`stopReason` is not supported"),
        ({"suppressOutput": True}, "`suppressOutput` is not supported"),
    ],
)
def test_what_fails_before_a_call_lets_it_go_on(run: Any, told: str) -> None:
    meant = said(CODEX, "PreToolUse", CALL, run)
    assert told in meant.failed and meant.answer == Answer()


@pytest.mark.parametrize(
    ("run", "answer", "failed"),
    [
        (behaviour(behavior="allow"), Answer(decision="allow"), ""),
        (behaviour(behavior="deny", message=" no "), DENY, ""),
        (behaviour(behavior="deny"), Answer(decision="deny", reason="denied by a hook"), ""),
        (HookRun(2, stderr="no"), DENY, ""),
        (behaviour(behavior="allow", updatedInput={}), Answer(), "`updatedInput` is not supported"),
        (behaviour(behavior="allow", updatedPermissions=[]), Answer(), "`updatedPermissions` is not supported"),
        (behaviour(behavior="allow", interrupt=True), Answer(), "`interrupt` is not supported"),
        ({"continue": False}, Answer(), "not supported here"),
    ],
)
def test_a_question(run: Any, answer: Answer, failed: str) -> None:
    """An allow with something that Codex has not got is none: the person is asked."""
    meant = said(CODEX, "PermissionRequest", ASK, run)
    assert meant.answer == answer and failed in meant.failed and bool(failed) == bool(meant.failed)


FEEDBACK = Answer(changes=(Change("result", "set", ""),), context=("bad",))


@pytest.mark.parametrize(
    ("run", "answer", "failed"),
    [
        ({"decision": "block", "reason": "bad"}, FEEDBACK, ""),
        (HookRun(2, stderr="bad"), FEEDBACK, ""),
        (HookRun(2), Answer(), "without a reason"),
        ({"decision": "block"}, Answer(), "block without a reason"),
        ({"reason": "bad"}, Answer(), "`reason` without `decision`"),
        (inner("PostToolUse", additionalContext="know"), Answer(context=("know",)), ""),
        (inner("PostToolUse", updatedMCPToolOutput={"ok": True}), Answer(), ""),
        ({"continue": False, "stopReason": "bad"}, FEEDBACK, ""),
        ({"continue": False, "stopReason": "enough", "reason": "bad"}, FEEDBACK, ""),
        ({"suppressOutput": True}, Answer(), "not supported"),
        ("text", Answer(), ""),
    ],
)  # fmt: skip
def test_after_a_call(run: Any, answer: Answer, failed: str) -> None:
    meant = said(CODEX, "PostToolUse", DONE, run)
    assert meant.answer == answer and failed in meant.failed and bool(failed) == bool(meant.failed)


def test_after_a_call_that_failed_its_error_is_replaced() -> None:
    at = event(ToolFailed("bash", {}, "exit 1", "failed", "c"))
    assert said(CODEX, "PostToolUse", at, {"decision": "block", "reason": "x"}).answer.changes == (
        Change("error", "set", ""),
    )


MORE = Answer(inject=Inject('<hook_prompt hook_run_id="stop:x">more</hook_prompt>'))


@pytest.mark.parametrize(
    ("run", "answer", "failed"),
    [
        ("", Answer(), ""),
        ({"decision": "block", "reason": " more "}, MORE, ""),
        (HookRun(2, stderr="more"), MORE, ""),
        (HookRun(2), Answer(), "without a reason"),
        ("done", Answer(), "must be a JSON object"),
        ({"decision": "block"}, Answer(), "block without a reason"),
        (
            {"continue": False, "stopReason": "enough", "decision": "block", "reason": "more"},
            Answer(decision="deny", halt=True, reason="enough"), "",
        ),
        (inner("Stop"), Answer(), "unknown field"),
    ],
)  # fmt: skip
def test_stop(run: Any, answer: Answer, failed: str) -> None:
    meant = said(CODEX, "Stop", STOP, run)
    assert meant.answer == answer and failed in meant.failed and bool(failed) == bool(meant.failed)


def test_a_stop_hook_that_blocks_is_told_so_the_next_time() -> None:
    facts = about()
    said(CODEX, "Stop", STOP, {}, facts)
    assert facts.prompt_state(CodexStops).count == 0
    said(CODEX, "Stop", STOP, HookRun(2, stderr="more"), facts)
    assert facts.prompt_state(CodexStops).count == 1


def test_prompts_and_starts_take_plain_text_as_context() -> None:
    start = event(SessionStarted("main", "/c"))
    for name, at in (("UserPromptSubmit", PROMPT), ("SessionStart", start)):
        assert said(CODEX, name, at, "know this\n").answer == Answer(context=("know this",))
        assert "must be a JSON object" in said(CODEX, name, at, "{know").failed
        assert said(CODEX, name, at, inner(name, additionalContext="x")).answer == Answer(context=("x",))
    assert said(CODEX, "UserPromptSubmit", PROMPT, HookRun(2, stderr="no")).answer == DENY
    assert said(CODEX, "SessionStart", start, HookRun(2, stderr="no")).failed == "exit status 2: no"
    stop = said(CODEX, "UserPromptSubmit", PROMPT, {"continue": False, "stopReason": "enough", "systemMessage": "told"})
    assert stop.answer == Answer(decision="deny", halt=True, reason="enough") and stop.to_user == "told"


def test_a_compaction_can_be_stopped() -> None:
    at = event(ContextOverflow(9, 10, 90.0, "rolling", ""))
    assert said(CODEX, "PreCompact", at, {"continue": False}).answer.halt
    assert said(CODEX, "PreCompact", at, HookRun(2, stderr="x")).failed == "exit status 2: x"


def test_a_long_context_is_saved_and_named(tmp_path: Path) -> None:
    [text] = said(CODEX, "UserPromptSubmit", PROMPT, "x" * 20_000, about(tmp_path)).answer.context
    assert len(text) < 3000 and "20,000 characters from a hook" in text
    [saved] = (tmp_path / "context").rglob("hook_*.txt")
    assert saved.read_text() == "x" * 20_000 and str(saved) in text
