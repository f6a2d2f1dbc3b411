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
from cru.extensions.hooks import names
from cru.extensions.hooks.dialect import About, Moment, Run, Said
from cru.extensions.hooks.dialects import codex_output as output
from cru.extensions.hooks.dialects import common
from cru.extensions.hooks.dialects.codex_config import NOTIFICATION, NOTIFY, entries, is_plain
from cru.extensions.hooks.dialects.spill import spilled
from cru.extensions.hooks.entry import DialectName, Entry, Layer, Problem, Source

FILES = ("hooks.json", "config.toml")
BLOCKED = "codex stop"
"""The counter of Stop hooks that made the running turn go on."""


class Codex:
    """See dialect.Dialect. Two entries with the same command both run."""

    name: DialectName = "codex"
    dedups = False
    moments: Mapping[str, Sequence[Moment]] = {}

    def places(self, about: About) -> list[tuple[Layer, Path]]:
        user = Path(about.env.get("CODEX_HOME") or about.user_home / ".codex")
        found: list[tuple[Layer, Path]] = [("user", user / file) for file in FILES]
        return [*found, *(("project", about.root / ".codex" / file) for file in FILES)]

    def parse(self, source: Source) -> tuple[list[Entry], list[Problem]]:
        return entries(source, self.moments)

    def matches(self, entry: Entry, event: Event, subject: str) -> bool:
        """A name, a list of names with `|` between, else an unanchored regular expression; on any name that Codex, or cru, has for it."""
        matcher = entry.matcher
        if matcher in ("", "*"):
            return True
        known = names.names("codex", subject)
        if is_plain(matcher):
            return any(word in known for word in matcher.split("|"))
        wanted = re.compile(matcher)
        return any(wanted.search(name) for name in known)

    def stdin(self, entry: Entry, moment: Moment, event: Event, about: About) -> bytes:
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

    def environment(self, entry: Entry, moment: Moment, event: Event, about: About) -> dict[str, str]:
        env = {"CLAUDE_PROJECT_DIR": str(about.root)}
        return {**env, NOTIFICATION: _notification(event, about)} if moment.name == NOTIFY else env


def _notification(event: Event, about: About) -> str:
    said = {
        "type": "agent-turn-complete", "thread-id": event.stamp.session_id, "turn-id": about.turn, "cwd": str(about.cwd),
        "client": "cru", "input-messages": [about.prompt], "last-assistant-message": _field(event, "response"),
    }  # fmt: skip
    return msgspec.json.encode(said).decode()


# what scripts read ----------------------------------------------------------------------------------------------------------------


def _field(event: Event, name: str) -> Any:
    return getattr(event.payload, name, "")


def _tool_fields(event: Event, about: About) -> dict[str, Any]:
    tool = common.tool(event)
    args = names.arguments_out("codex", tool, common.args(event), about.cwd)
    return {"tool_name": names.theirs("codex", tool), "tool_input": args, "tool_use_id": _field(event, "call_id")}


def _asked_fields(event: Event, about: About) -> dict[str, Any]:
    fields = _tool_fields(event, about)
    fields["tool_input"].setdefault("description", _field(event, "why"))
    return fields


def _called_fields(event: Event, about: About) -> dict[str, Any]:
    return {**_tool_fields(event, about), "tool_response": _field(event, "result") or _field(event, "error")}


def _stop_fields(event: Event, about: About) -> dict[str, Any]:
    active = about.blocks.get(BLOCKED, 0) > 0
    return {"stop_hook_active": active, "last_assistant_message": _field(event, "response") or None}


def _source(event: Event) -> str:
    return "resume" if _field(event, "resumed") else str(_field(event, "source") or "startup")


def _only(*fields: str) -> Callable[[Event, About], dict[str, Any]]:
    return lambda event, about: {name: _field(event, name) for name in fields}


def _trigger(event: Event) -> str:
    return str(_field(event, "trigger"))


# what outputs mean ----------------------------------------------------------------------------------------------------------------


def _reads(read: Callable[[Run, str], Said], name: str) -> Callable[[Entry, Event, Run, About], Said]:
    return lambda entry, event, run, about: spilled(read(run, name), about)


def _on_call(entry: Entry, event: Event, run: Run, about: About) -> Said:
    said = output.calling(run, "PreToolUse")
    for change in said.answer.changes:
        if not isinstance(change.value, dict):
            return Said(failed="`updatedInput` is not an object")
        args = names.arguments_back("codex", common.tool(event), change.value)
        said = replace(said, answer=replace(said.answer, changes=(Change("args", "set", args),)))
    return spilled(said, about)


def _on_called(entry: Entry, event: Event, run: Run, about: About) -> Said:
    field = "result" if event.name == "tool:completed" else "error"
    return spilled(output.called(run, "PostToolUse", field), about)


def _on_stop(entry: Entry, event: Event, run: Run, about: About) -> Said:
    said = output.ended(run, "Stop")
    if said.answer.inject is not None:
        about.blocks[BLOCKED] = about.blocks.get(BLOCKED, 0) + 1
    return said


def _on_notified(entry: Entry, event: Event, run: Run, about: About) -> Said:
    return common.failure(run) if run.exit else Said()


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

Codex.moments = {
    "SessionStart": (
        Moment(
            "SessionStart", "session:started", subject=_source, fields=lambda event, about: {"source": _source(event)},
            answer=_reads(output.started, "SessionStart"),
        ),
    ),
    "SessionEnd": (
        Moment(
            "SessionEnd", "session:ended", subject=lambda event: str(_field(event, "reason")), fields=_only("reason"),
            answer=_OBSERVED["SessionEnd"], timeout=1.0,
        ),
    ),
    "UserPromptSubmit": (
        Moment(
            "UserPromptSubmit", "message:received", hears=lambda event: event.stamp.source in common.TYPED,
            fields=lambda event, about: {"prompt": _field(event, "content")},
            answer=_reads(output.submitted, "UserPromptSubmit"),
        ),
    ),
    "PreToolUse": (Moment("PreToolUse", "tool:before_call", subject=common.tool, fields=_tool_fields, answer=_on_call),),
    "PermissionRequest": (
        Moment(
            "PermissionRequest", "permission:requested", subject=common.tool, fields=_asked_fields,
            answer=_reads(output.asked, "PermissionRequest"),
        ),
    ),
    "PostToolUse": (
        Moment("PostToolUse", "tool:completed", subject=common.tool, fields=_called_fields, answer=_on_called),
        Moment(
            "PostToolUse", "tool:failed", hears=_was_run, subject=common.tool, fields=_called_fields, answer=_on_called,
        ),
    ),
    "PreCompact": (
        Moment(
            "PreCompact", "context:overflow", subject=_trigger, fields=_only("trigger"), answer=_OBSERVED["PreCompact"],
        ),
    ),
    "PostCompact": (
        Moment(
            "PostCompact", "session:compacted", subject=_trigger, fields=_only("trigger"), answer=_OBSERVED["PostCompact"],
        ),
    ),
    "Stop": (Moment("Stop", "turn:complete", hears=_ended("done"), fields=_stop_fields, answer=_on_stop),),
    "StopFailure": (
        Moment(
            "StopFailure", "turn:complete", hears=_ended("error"), fields=_only("error"), answer=_OBSERVED["StopFailure"],
        ),
    ),
    "Interrupt": (
        Moment("Interrupt", "turn:complete", hears=_ended("interrupted"), answer=_OBSERVED["Interrupt"]),
    ),
    "SubagentStart": (Moment("SubagentStart", later=SUB_AGENTS, subject=lambda event: ""),),
    "SubagentStop": (Moment("SubagentStop", later=SUB_AGENTS, subject=lambda event: ""),),
    NOTIFY: (Moment(NOTIFY, "turn:complete", hears=_ended("done"), answer=_on_notified),),
}  # fmt: skip
