"""A refusal that a dialect does not read is a failure of the hook: shown, and refused where its entry, or the run, says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.hooks.dialect_world import calls, results, turn
from tests.kit import HomeDir, Reply
from tests.roads.command_hooks import BASH, FLAT, HOOKS, PLACES

HIDDEN = {
    "claude": '{"permissionDecision": "deny"}',
    "codex": 'welcome\n{\n"decision": "block",\n"reason": "x"\n}',
    "gemini": '[{"decision": "deny"}]',
    "crush": '{"permission_decision": "deny"}',
    "cru": '{"permissionDecision": "deny"}',
}
FAILED = [
    ("claude", '{"decision": "deny"}', 0),  # no word of Claude's
    ("claude", '{"decision": "deny",}', 0),
    ("claude", '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "Deny"}}', 0),
    ("claude", '{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}}', 0),
    ("claude", '{"decision": "block", "reason": 5}', 0),
    ("claude", 'welcome\n{"decision": "block"}', 1),
    ("claude", '{"continue": true}{"decision": "block"}', 0),
    ("claude", "x" * (2 << 20) + '\n{"decision": "block"}', 0),
    ("codex", '{"decision": "block"}', 0),  # no reason
    ("codex", '{"decision": "block"}', 1),
    ("codex", '{"decision": "block", "reason": "x", "more": 1}', 0),
    ("codex", '{"continue": false}', 0),
    ("gemini", '{"decision": "deny",}', 0),
    ("crush", '{"decision": "deny"}', 1),
]
"""Refusals of hooks that have failed in another way, too: (dialect, output, exit status)."""
ALLOW_AND_DENY = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}, "permissionDecision": "deny"}'
MUST = {"claude": {"onFailure": "block"}, "cru": {"on_error": "deny"}}


def install(home: HomeDir, dialect: str, output: str, event: str = "", **more: Any) -> None:
    (home.path / "output").write_text(output)
    handler: dict[str, Any] = {"command": f"cat {home.path}/output", **more}
    if dialect not in FLAT:
        handler = {"hooks": [{"type": "command", **handler}]}
    path = home.path / PLACES[dialect]
    path.parent.mkdir(parents=True, exist_ok=True)
    event = event or ("BeforeTool" if dialect == "gemini" else "PreToolUse")
    path.write_text(json.dumps({"hooks": {event: [{"matcher": BASH[dialect], **handler}]}}))


def run(home: HomeDir, *argv: str, mode: str = "trust") -> tuple[str, str]:
    """(what the model read of its call, what the person read)."""
    done, last = turn(home, calls("echo ran"), Reply("done"), config=HOOKS, mode=mode, argv=argv)
    assert done.code == 0, done
    return results(last)[-1].strip(), done.err


@pytest.mark.parametrize("dialect", HIDDEN)
def test_it_is_shown(home: HomeDir, dialect: str) -> None:
    install(home, dialect, HIDDEN[dialect])
    result, err = run(home)
    assert result == "ran" and "failed: " in err and ("is not read" in err or "unknown key" in err), err


@pytest.mark.parametrize("dialect", MUST)
def test_it_refuses_where_the_entry_says_so(home: HomeDir, dialect: str) -> None:
    install(home, dialect, HIDDEN[dialect], **MUST[dialect])
    result, _ = run(home)
    assert result != "ran" and "failed" in result


@pytest.mark.parametrize("dialect", ["claude", "codex", "gemini", "crush"])
def test_it_refuses_in_a_strict_run(home: HomeDir, dialect: str) -> None:
    install(home, dialect, HIDDEN[dialect])
    result, err = run(home, "--strict-hooks")
    assert result != "ran" and "is not read" in result and "is not read" in err


LEGAL = ["checked it: fine", '{"level": "info", "msg": "checked"}']


@pytest.mark.parametrize(
    ("dialect", "output"),
    [*((dialect, text) for dialect in ("claude", "gemini", "crush") for text in LEGAL), ("codex", LEGAL[0])],
)  # to Codex itself an unknown field is a failure
def test_a_line_of_a_log_is_legal(home: HomeDir, dialect: str, output: str) -> None:
    install(home, dialect, output)
    result, err = run(home, "--strict-hooks")
    assert result == "ran" and "failed" not in err


def test_a_prompt_keeps_its_context(home: HomeDir) -> None:
    """Text is context there; a refusal behind it was meant as an answer."""
    install(home, "claude", 'It is Tuesday.\n{"decision": "block"}', "UserPromptSubmit")
    result, err = run(home)
    assert result == "ran" and "is not read" in err
    assert "It is Tuesday." in (home.context() / "context.jsonl").read_text()


@pytest.mark.parametrize(("dialect", "output", "status"), FAILED)
def test_it_refuses_in_a_strict_run_whatever_else_has_failed(
    home: HomeDir, dialect: str, output: str, status: int
) -> None:
    install(home, dialect, output, command=f"cat {home.path}/output; exit {status}")
    result, err = run(home, "--strict-hooks")
    assert result != "ran" and "failed: " in err


def test_an_approval_beside_a_refusal_approves_nothing(home: HomeDir) -> None:
    install(home, "claude", ALLOW_AND_DENY)
    result, err = run(home, mode="ask")
    assert result != "ran" and "is not read" in err
