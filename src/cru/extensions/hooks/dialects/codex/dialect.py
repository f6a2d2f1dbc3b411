"""Codex' hooks: nested entries in hooks.json or config.toml, strict outputs, and the older `notify`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cru.events.answers import Change
from cru.events.stamp import Event
from cru.extensions.hooks.dialects.codex import output
from cru.extensions.hooks.dialects.codex.config import NOTIFICATION, NOTIFY, is_plain, read_entries
from cru.extensions.hooks.model import tool_names
from cru.extensions.hooks.model.entry import DialectName, HookEntry, HookFileProblem, HookSource, Layer
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.parsing import common
from cru.extensions.hooks.parsing.spill import spilled

FILES = ("hooks.json", "config.toml")
BLOCKED = "codex stop"
"""The counter of Stop hooks that made the running turn go on."""


class Codex:
    """See dialect.Dialect. Two entries with the same command both run."""

    name: DialectName = "codex"
    runs_equal_once = False
    events: Mapping[str, Sequence[EventMapping]] = {}

    def places(self, about: SessionFacts) -> list[tuple[Layer, Path]]:
        user = Path(about.env.get("CODEX_HOME") or about.user_home / ".codex")
        found: list[tuple[Layer, Path]] = [("user", user / file) for file in FILES]
        return [*found, *(("project", about.root / ".codex" / file) for file in FILES)]

    def parse(self, source: HookSource) -> tuple[list[HookEntry], list[HookFileProblem]]:
        return read_entries(source, self.events)

    def matches(self, entry: HookEntry, event: Event, subject: str) -> bool:
        """A name, a list of names with `|` between, else an unanchored regular expression; on any name that Codex, or cru, has for it."""
        matcher = entry.matcher
        if matcher in ("", "*"):
            return True
        known = tool_names.names("codex", subject)
        if is_plain(matcher):
            return any(word in known for word in matcher.split("|"))
        wanted = re.compile(matcher)
        return any(wanted.search(name) for name in known)

    def stdin(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> bytes:
        if moment.name == NOTIFY:
            return b""
        stamp = event.stamp
        known: dict[str, Any] = {
            "session_id": stamp.session_id, "turn_id": about.turn, "transcript_path": str(about.transcript()),
            "cwd": str(about.cwd), "hook_event_name": moment.name, "model": about.model,
            "permission_mode": common.MODES.get(about.mode(), "default"), "is_sub_agent": stamp.is_sub_agent,
        }  # fmt: skip
        if stamp.is_sub_agent:
            known |= {"agent_id": stamp.agent_id, "agent_type": "", "depth": stamp.depth}
        return common.one_line({**known, **(moment.fields(event, about) if moment.fields else {})})

    def environment(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> dict[str, str]:
        env = {"CLAUDE_PROJECT_DIR": str(about.root)}
        return {**env, NOTIFICATION: _notification(event, about)} if moment.name == NOTIFY else env


def _notification(event: Event, about: SessionFacts) -> str:
    said = {
        "type": "agent-turn-complete", "thread-id": event.stamp.session_id, "turn-id": about.turn, "cwd": str(about.cwd),
        "client": "cru", "input-messages": [about.prompt], "last-assistant-message": _field(event, "response"),
    }  # fmt: skip
    return msgspec.json.encode(said).decode()


# what scripts read ----------------------------------------------------------------------------------------------------------------


def _field(event: Event, name: str) -> Any:
    return getattr(event.payload, name, "")


def _tool_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    tool = common.tool(event)
    args = tool_names.to_foreign_arguments("codex", tool, common.args(event), about.cwd)
    return {
        "tool_name": tool_names.foreign_name("codex", tool),
        "tool_input": args,
        "tool_use_id": _field(event, "call_id"),
    }


def _asked_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    fields = _tool_fields(event, about)
    fields["tool_input"].setdefault("description", _field(event, "why"))
    return fields


def _called_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    return {**_tool_fields(event, about), "tool_response": _field(event, "result") or _field(event, "error")}


def _stop_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    active = about.blocks.get(BLOCKED, 0) > 0
    return {"stop_hook_active": active, "last_assistant_message": _field(event, "response") or None}


def _source(event: Event) -> str:
    return "resume" if _field(event, "resumed") else str(_field(event, "source") or "startup")


def _only(*fields: str) -> Callable[[Event, SessionFacts], dict[str, Any]]:
    return lambda event, about: {name: _field(event, name) for name in fields}


def _trigger(event: Event) -> str:
    return str(_field(event, "trigger"))


# what outputs mean ----------------------------------------------------------------------------------------------------------------


def _reads(
    read: Callable[[CommandResult, str], HookResult], name: str
) -> Callable[[HookEntry, Event, CommandResult, SessionFacts], HookResult]:
    return lambda entry, event, run, about: spilled(read(run, name), about)


def _on_call(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
    said = output.calling(run, "PreToolUse")
    for change in said.answer.changes:
        if not isinstance(change.value, dict):
            return HookResult(failed="`updatedInput` is not an object")
        args = tool_names.to_own_arguments("codex", common.tool(event), change.value)
        said = replace(said, answer=replace(said.answer, changes=(Change("args", "set", args),)))
    return spilled(said, about)


def _on_called(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
    field = "result" if event.name == "tool:completed" else "error"
    return spilled(output.called(run, "PostToolUse", field), about)


def _on_stop(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
    said = output.ended(run, "Stop")
    if said.answer.inject is not None:
        about.blocks[BLOCKED] = about.blocks.get(BLOCKED, 0) + 1
    return said


def _on_notified(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
    return common.failure(run) if run.exit else HookResult()


def _ended(*causes: str) -> Callable[[Event], bool]:
    return lambda event: _field(event, "cause") in causes


def _was_run(event: Event) -> bool:
    """Codex tells of calls that ran; one that was refused or invalid did not."""
    return _field(event, "which") in ("failed", "timeout")


SUB_AGENTS = "sub-agents are not available yet"
_OBSERVED = {
    name: _reads(output.observed, name)
    for name in ("SessionEnd", "PreCompact", "PostCompact", "Interrupt", "StopFailure")
}

Codex.events = {
    "SessionStart": (
        EventMapping(
            "SessionStart", "session:started", subject=_source, fields=lambda event, about: {"source": _source(event)},
            answer=_reads(output.started, "SessionStart"),
        ),
    ),
    "SessionEnd": (
        EventMapping(
            "SessionEnd", "session:ended", subject=lambda event: str(_field(event, "reason")), fields=_only("reason"),
            answer=_OBSERVED["SessionEnd"],
        ),
    ),
    "UserPromptSubmit": (
        EventMapping(
            "UserPromptSubmit", "message:received", accepts=lambda event: event.stamp.source in common.TYPED,
            fields=lambda event, about: {"prompt": _field(event, "content")},
            answer=_reads(output.submitted, "UserPromptSubmit"),
        ),
    ),
    "PreToolUse": (EventMapping("PreToolUse", "tool:before_call", subject=common.tool, fields=_tool_fields, answer=_on_call),),
    "PermissionRequest": (
        EventMapping(
            "PermissionRequest", "permission:requested", subject=common.tool, fields=_asked_fields,
            answer=_reads(output.asked, "PermissionRequest"),
        ),
    ),
    "PostToolUse": (
        EventMapping("PostToolUse", "tool:completed", subject=common.tool, fields=_called_fields, answer=_on_called),
        EventMapping(
            "PostToolUse", "tool:failed", accepts=_was_run, subject=common.tool, fields=_called_fields, answer=_on_called,
        ),
    ),
    "PreCompact": (
        EventMapping(
            "PreCompact", "context:overflow", subject=_trigger, fields=_only("trigger"), answer=_OBSERVED["PreCompact"],
        ),
    ),
    "PostCompact": (
        EventMapping(
            "PostCompact", "session:compacted", subject=_trigger, fields=_only("trigger"), answer=_OBSERVED["PostCompact"],
        ),
    ),
    "Stop": (EventMapping("Stop", "turn:complete", accepts=_ended("done"), fields=_stop_fields, answer=_on_stop),),
    "StopFailure": (
        EventMapping(
            "StopFailure", "turn:complete", accepts=_ended("error"), fields=_only("error"), answer=_OBSERVED["StopFailure"],
        ),
    ),
    "Interrupt": (
        EventMapping("Interrupt", "turn:complete", accepts=_ended("interrupted"), answer=_OBSERVED["Interrupt"]),
    ),
    "SubagentStart": (EventMapping("SubagentStart", unavailable=SUB_AGENTS, subject=lambda event: ""),),
    "SubagentStop": (EventMapping("SubagentStop", unavailable=SUB_AGENTS, subject=lambda event: ""),),
    NOTIFY: (EventMapping(NOTIFY, "turn:complete", accepts=_ended("done"), answer=_on_notified),),
}  # fmt: skip
