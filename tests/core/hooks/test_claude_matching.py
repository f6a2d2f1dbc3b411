"""Matchers and `if` of Claude Code's hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.claude_world import about, config, entry, event, moment, read

from cru.core.events import payloads as p
from cru.core.hooks.dialects.claude.dialect import DIALECT as CLAUDE
from cru.core.hooks.dialects.claude.matching import condition_holds, matcher_fits

# matcher, our tool, whether it fits
TOOLS: list[tuple[str, str, bool]] = [
    ("", "bash", True), ("*", "write", True), ("Bash", "bash", True), ("bash", "bash", True), ("Bash", "read", False),
    ("BASH", "bash", False), ("Bas", "bash", False), ("Edit|Write", "write", True), ("Edit|Write", "bash", False),
    ("Edit, Write", "edit", True), ("Edit , Write", "write", True), ("MultiEdit", "edit", True), ("Write|", "bash", False),
    ("B.sh", "bash", True), ("^Ba", "bash", True), (".*", "anything", True), ("ash$", "bash", True), ("Note.*|Bash", "bash", True),
    ("^(?!Bash$)", "bash", False), ("^(?!Bash$)", "read", True), ("(?<n>B)ash", "bash", True), (r"(?<n>a)b\k<n>", "aba", True),
    ("WebFetch", "fetch", True), ("TodoWrite", "update_todos", True), ("mcp__memory", "mcp__memory__get", False),
    ("mcp__memory__get", "mcp__memory__get", True), ("mcp__memory__.*", "mcp__memory__get", True),
    ("mcp__.*__write.*", "mcp__files__write_file", True), ("my-tool", "my-tool", True), ("recurse", "recurse", True),
]  # fmt: skip


@pytest.mark.parametrize(("matcher", "tool", "fit"), TOOLS)
def test_a_tool_has_claudes_name_and_ours(matcher: str, tool: str, fit: bool) -> None:
    assert matcher_fits("PreToolUse", matcher, tool, "") is fit


# event, matcher, value, whether it fits
VALUES: list[tuple[str, str, str, bool]] = [
    ("SessionStart", "startup|resume", "resume", True), ("SessionStart", "startup", "compact", False),
    ("SessionStart", "startup, clear", "clear", True), ("SessionEnd", "clear", "clear", True),
    ("PreCompact", "manual", "auto", False), ("Notification", "permission_prompt", "idle_prompt", False),
    ("Notification", "_prompt$", "idle_prompt", True), ("StopFailure", "rate_limit|overloaded", "overloaded", True),
    ("StopFailure", "rate_limit, overloaded", "overloaded", False), ("StopFailure", "rate-limit", "a rate-limit", True),
    ("FileChanged", ".env", "src/xenv", True), ("FileChanged", "package_json|b", "b", True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "matcher", "value", "fit"), VALUES)
def test_other_events_have_other_values(name: str, matcher: str, value: str, fit: bool) -> None:
    assert matcher_fits(name, matcher, "", value) is fit


@pytest.mark.parametrize(
    "name", ["UserPromptSubmit", "PostToolBatch", "Stop", "TeammateIdle", "TaskCreated", "MessageDisplay", "CwdChanged"]
)
def test_where_matchers_have_no_effect(name: str) -> None:
    [made], problems = read(config(name, {"type": "command", "command": "x"}, matcher="never("))
    assert not made.problem and not problems
    assert all(row.subject is None for row in CLAUDE.events[name])


# rule, tool, arguments, whether it holds; the project is /p
RULES: list[tuple[str, str, dict[str, Any], bool]] = [
    ("Bash", "bash", {"command": "ls"}, True), ("Bash(*)", "bash", {"command": "ls"}, True), ("Bash", "read", {}, False),
    ("Bash(git *)", "bash", {"command": "git push"}, True), ("Bash(git *)", "bash", {"command": "git"}, True),
    ("Bash(git *)", "bash", {"command": "ls"}, False), ("Bash(git *)", "bash", {"command": "gitk"}, False),
    ("Bash(git *)", "bash", {"command": "cd a && git push"}, True), ("Bash(git push:*)", "bash", {"command": "git push -f"}, True),
    ("Bash(git push:*)", "bash", {"command": "git pull"}, False), ("Bash(rm *)", "bash", {"command": "if ((; then"}, True),
    ("Bash(rm *)", "bash", {"command": 'eval "$(cat x)"'}, True), ("Bash(npm run test)", "bash", {"command": "npm run test"}, True),
    ("Edit(*.ts)", "edit", {"file_path": "src/a.ts"}, True), ("Edit(*.ts)", "write", {"file_path": "/p/b.ts"}, False),
    ("Edit(*.ts)", "edit", {"file_path": "a.py"}, False), ("Edit(src/**)", "edit", {"file_path": "src/a/b"}, True),
    ("Edit(src/**)", "edit", {"file_path": "lib/a"}, False), ("Edit(/src/**)", "edit", {"file_path": "src/a"}, True),
    ("Read(./.env)", "read", {"file_path": "/p/.env"}, True), ("Read(//etc/**)", "read", {"file_path": "/etc/passwd"}, True),
    ("Read(~/.ssh/**)", "read", {"file_path": "/h/.ssh/id"}, True), ("Read(//etc/**)", "read", {"file_path": "a"}, False),
    ("Read", "grep", {"pattern": "x"}, True), ("Read(src/**)", "grep", {"pattern": "x", "path": "src/a"}, True),
    ("Write", "write", {"file_path": "a"}, True), ("Write", "edit", {"file_path": "a"}, False),
    ("WebFetch(domain:example.com)", "fetch", {"url": "https://EXAMPLE.com:8080/x"}, True),
    ("WebFetch(domain:example.com)", "fetch", {"url": "https://example.com.evil.org/"}, False),
    ("WebFetch(domain:*.example.com)", "fetch", {"url": "https://a.example.com/"}, True),
    ("mcp__memory", "mcp__memory__get", {}, True), ("mcp__memory__get", "mcp__memory__set", {}, False),
    ("mcp__memory__*", "mcp__memory__set", {}, True), ("mcp__mem", "mcp__memory__get", {}, False),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "tool", "args", "held"), RULES)
def test_an_if_is_one_permission_rule(rule: str, tool: str, args: dict[str, Any], held: bool) -> None:
    assert condition_holds(rule, tool, args, "/p", "/h") is held


def test_matcher_and_if_together(tmp_path: Path) -> None:
    made = entry("PreToolUse", "Bash|Read", **{"if": "Bash(git *)"})
    calls = [("bash", "git push", True), ("bash", "ls", False), ("read", "", False), ("write", "git", False)]
    for tool, command, fit in calls:
        at = event(p.ToolBeforeCall(tool, {"command": command}, "c"))
        row = moment("PreToolUse", at, about(tmp_path))
        assert row is not None and row.subject is not None
        assert CLAUDE.matches(made, at, row.subject(at), about(tmp_path)) is fit
