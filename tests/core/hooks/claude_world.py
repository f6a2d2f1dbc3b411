"""What tests of Claude Code's hooks start from: a configuration as text, an event made by hand, a run that was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.events.catalog import BY_TYPE
from cru.core.events.stamp import Event, Stamp
from cru.core.hooks.dialects.claude.dialect import DIALECT as CLAUDE
from cru.core.hooks.model.entry import HookEntry, HookFileProblem, HookSource, Layer
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import EventMapping
from cru.core.hooks.model.result import HookResult, HookRun

# The events of the documentation, in its order.
EVENTS = (
    "SessionStart", "Setup", "InstructionsLoaded", "UserPromptSubmit", "UserPromptExpansion", "MessageDisplay", "PreToolUse",
    "PermissionRequest", "PermissionDenied", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "SubagentStart",
    "SubagentStop", "TaskCreated", "TaskCompleted", "Stop", "StopFailure", "TeammateIdle", "ConfigChange", "CwdChanged",
    "DirectoryAdded", "FileChanged", "WorktreeCreate", "WorktreeRemove", "PreCompact", "PostCompact", "SessionEnd", "Elicitation",
    "ElicitationResult", "PreModelSwitch", "PostModelSwitch", "PreSkillShellCommand",
)  # fmt: skip


SUB_AGENT: dict[str, Any] = {"is_sub_agent": True, "depth": 1, "agent_id": "a1", "agent_type": "explore"}
"""Of the stamp of an event in a sub-agent."""


def about(path: Path, *, mode: str = "ask", **env: str) -> SessionFacts:
    return SessionFacts(
        session_id="sess", context="main", folder=path / "context", cwd=path, root=path, home=path / ".cru", user_home=path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(path), **env}, mode=lambda: mode,
        transcript=lambda: path / "transcript.jsonl",
    )  # fmt: skip


def event(payload: Struct, **stamp: Any) -> Event:
    known: dict[str, Any] = {
        "session_id": "sess", "run_id": "run", "agent_id": "main", "parent_call_id": "", "depth": 0, "is_sub_agent": False,
        "dispatch_seq": 7, "parent_seq": 0, "timestamp": 0.0, "is_continuation": False, "source": "user", "purpose": "",
    }  # fmt: skip
    return Event(BY_TYPE[type(payload)], Stamp(**{**known, **stamp}), payload)


def read(
    text: str, layer: Layer = "user", facts: SessionFacts | None = None
) -> tuple[list[HookEntry], list[HookFileProblem]]:
    source = HookSource("claude", layer, Path(f"/{layer}/settings.json"), text)
    file = CLAUDE.parse(source, facts or about(Path("/project")))
    return file.entries, file.problems


def config(name: str, *handlers: Any, **group: Any) -> str:
    return msgspec.json.encode({"hooks": {name: [{**group, "hooks": handlers}]}}).decode()


def entry(name: str, matcher: str = "", **handler: Any) -> HookEntry:
    [made], problems = read(config(name, {"type": "command", "command": "x", **handler}, matcher=matcher))
    assert not problems, problems
    return made


def moment(name: str, at: Event, facts: SessionFacts) -> EventMapping | None:
    """The row of an event that hears this one."""
    rows = [row for row in CLAUDE.events[name] if row.event == at.name]
    return next((row for row in rows if row.accepts is None or row.accepts(at, facts)), None)


def given(name: str, payload: Struct, path: Path, **stamp: Any) -> dict[str, Any]:
    """What a hook reads on standard input."""
    at, facts = event(payload, **stamp), about(path)
    row = moment(name, at, facts)
    assert row is not None
    value: dict[str, Any] = msgspec.json.decode(CLAUDE.stdin(row, at, facts))
    return value


def said(
    name: str, payload: Struct, path: Path, out: Any = "", *, exit: int = 0, err: str = "", **more: Any
) -> HookResult:
    """What a run means. out: its standard output, anything but a text as JSON · facts: instead of `about` · seq."""
    facts = more.get("facts") or about(path)
    at = event(payload, dispatch_seq=more.get("seq", 7), **(SUB_AGENT if name == "SubagentStop" else {}))
    row = moment(name, at, facts)
    assert row is not None and row.answer is not None
    stdout = out if isinstance(out, str) else msgspec.json.encode(out).decode()
    return row.answer(more.get("entry") or entry(name), at, HookRun(exit, stdout, err), facts)
