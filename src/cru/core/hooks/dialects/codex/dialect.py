"""Codex' hooks: nested entries in hooks.json or config.toml, strict outputs, and the older `notify`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.events.answers import PASS, Answer, Change, Inject
from cru.core.events.registry import HandlerFunction
from cru.core.events.stamp import Event
from cru.core.hooks.dialects import FOOTPRINTS
from cru.core.hooks.dialects.codex import output
from cru.core.hooks.dialects.codex.config import NOTIFICATION, NOTIFY, SWITCH, is_plain, read_entries
from cru.core.hooks.dialects.codex.patches import PATCH, PATCHED, read_patch, to_patch
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.facts import FactsOf, SessionFacts
from cru.core.hooks.model.mapping import (
    MILLISECONDS,
    AnswerReader,
    ArgumentMapping,
    ConfigFormat,
    Dialect,
    EventMapping,
    Events,
    LaunchRules,
    Matching,
    ParsedFile,
    ToolMapping,
)
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common
from cru.core.hooks.parsing.bounded_regex import finds_any
from cru.core.hooks.parsing.common import spill_context


class CodexStops(Struct):
    """How many Stop hooks made the running turn go on."""

    count: int = 0


class CodexStart(Struct):
    """What SessionStart has said so far.

    stopped: why the first prompt is not sent, "" if it is
    """

    stopped: str = ""


ROLES = {"explore": "explorer", "general": "default"}
"""Kinds of sub-agents → Codex' roles."""
_AGENTS = {**{role: own for own, role in ROLES.items()}, "worker": "general"}
AGENT_TYPE = ArgumentMapping(
    "agent_type",
    lambda agent: ROLES.get(agent, agent) if isinstance(agent, str) else agent,
    lambda role: _AGENTS.get(role, role) if isinstance(role, str) else role,
)
TOOLS = ToolMapping(
    tools={
        "bash": ("Bash", "shell"), "read": ("Read",), "write": (PATCH, "Write", "Edit"), "edit": (PATCH, "Edit", "Write"),
        "glob": ("Glob",), "grep": ("Grep",), "ls": ("LS",), "fetch": ("web_search",), "update_todos": ("update_plan",),
        "task": ("spawn_agent", "collaborationspawn_agent"),
    },
    arguments={
        "bash": {"timeout": MILLISECONDS},
        "grep": {
            "include": ArgumentMapping("glob"), "ignore_case": ArgumentMapping("-i"), "context": ArgumentMapping("-C"),
        },
        "task": {"agent": AGENT_TYPE, "prompt": ArgumentMapping("message")},
    },
    dropped={
        "bash": ("description", "workdir", "run_in_background"),
        "task": ("items", "fork_context", "fork_turns", "task_name", "reasoning_effort"),
    },
    absolute_paths=True,
    has_double_names=True,
    agents=ROLES,
)  # fmt: skip


AGENT_EVENTS = ("SubagentStart", "SubagentStop")


def _read(source: HookSource, below: Sequence[ParsedFile], facts: SessionFacts) -> ParsedFile:
    return read_entries(source, EVENTS, is_off=any(SWITCH in file.disables for file in below))


def _matcher_fits(entry: HookEntry, event: Event, subject: str) -> bool:
    """A name, a list of names with `|` between, else an unanchored regular expression; on any name that Codex, or cru, has for it."""
    matcher = entry.matcher
    if matcher in ("", "*"):
        return True
    known = TOOLS.agent_names(subject) if entry.event in AGENT_EVENTS else TOOLS.names(subject)
    if is_plain(matcher):
        return any(word in known for word in matcher.split("|"))
    return finds_any(matcher, known)


def _stdin(mapping: EventMapping, event: Event, facts: SessionFacts) -> bytes:
    if mapping.name == NOTIFY:
        return b""
    stamp = event.stamp
    known: dict[str, Any] = {
        "session_id": stamp.session_id, "transcript_path": str(facts.transcript()), "cwd": str(facts.root),
        "hook_event_name": mapping.name, "model": facts.model, "permission_mode": common.MODES.get(facts.mode(), "default"),
        "is_sub_agent": stamp.is_sub_agent,
    }  # fmt: skip
    if mapping.name not in ("SessionStart", "SessionEnd"):
        known["turn_id"] = facts.turn
    if stamp.is_sub_agent:
        known |= {"agent_id": stamp.agent_id, "agent_type": TOOLS.foreign_agent(stamp.agent_type), "depth": stamp.depth}
    return common.to_json_line({**known, **(mapping.fields(event, facts) if mapping.fields else {})})


def _environment(entry: HookEntry, mapping: EventMapping, event: Event, facts: SessionFacts) -> dict[str, str]:
    return {NOTIFICATION: _notification(event, facts)} if mapping.name == NOTIFY else {}


def _notification(event: Event, facts: SessionFacts) -> str:
    notification = {
        "type": "agent-turn-complete", "thread-id": event.stamp.session_id, "turn-id": facts.turn, "cwd": str(facts.root),
        "client": "cru", "input-messages": [facts.prompt], "last-assistant-message": common.payload_field(event, "response"),
    }  # fmt: skip
    return msgspec.json.encode(notification).decode()


# what scripts read ----------------------------------------------------------------------------------------------------------------


def _tool_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    """A file that is written is a patch; what our own tool was given stands beside it."""
    tool, own = common.tool_name(event), common.tool_arguments(event)
    args = TOOLS.to_foreign(tool, own, facts.root)
    if tool in PATCHED:
        args = {"command": to_patch(tool, own), **args}
    return {
        "tool_name": TOOLS.foreign_name(tool),
        "tool_input": args,
        "tool_use_id": common.payload_field(event, "call_id"),
    }


def _asked_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    fields = _tool_fields(event, facts)
    fields["tool_input"].setdefault("description", common.payload_field(event, "why"))
    return fields


def _called_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    return {
        **_tool_fields(event, facts),
        "tool_response": common.payload_field(event, "result") or common.payload_field(event, "error"),
    }


def _stop_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    active = facts.prompt_state(CodexStops).count > 0
    return {"stop_hook_active": active, "last_assistant_message": common.payload_field(event, "response") or None}


def _new_agent(event: Event) -> str:
    return str(common.payload_field(event, "agent"))


def _agent_start_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    return {"agent_id": common.payload_field(event, "id"), "agent_type": TOOLS.foreign_agent(_new_agent(event))}


def _agent_stop_fields(event: Event, facts: SessionFacts) -> dict[str, Any]:
    path = facts.agent_transcript() if facts.agent_transcript is not None else facts.transcript()
    return {**_stop_fields(event, facts), "agent_transcript_path": str(path)}


def _source(event: Event) -> str:
    return (
        "resume" if common.payload_field(event, "resumed") else str(common.payload_field(event, "source") or "startup")
    )


def _reason(event: Event) -> str:
    reason = str(common.payload_field(event, "reason"))
    return reason if reason in ("clear", "resume") else "other"


def _only(*fields: str) -> Callable[[Event, SessionFacts], dict[str, Any]]:
    return lambda event, facts: {name: common.payload_field(event, name) for name in fields}


def _trigger(event: Event) -> str:
    return str(common.payload_field(event, "trigger"))


# what outputs mean ----------------------------------------------------------------------------------------------------------------


def _reads(read: Callable[[HookRun, str], HookResult], name: str) -> AnswerReader:
    return lambda entry, event, run, facts: spill_context(read(run, name), facts)


def _on_call(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    result = output.read_pre_tool_use(run, "PreToolUse")
    for change in result.answer.changes:
        if not isinstance(change.value, dict):
            return HookResult(failed="`updatedInput` is not an object")
        tool = common.tool_name(event)
        args = _patched(tool, event, change.value) if tool in PATCHED else TOOLS.to_own(tool, change.value)
        answer = (
            Answer(decision="deny", reason=NO_SUCH_PATCH)
            if args is None
            else replace(result.answer, changes=(Change("args", "set", args),))
        )
        result = replace(result, answer=answer)
    return spill_context(result, facts)


def _patched(tool: str, event: Event, changed: dict[str, Any]) -> dict[str, Any] | None:
    """Our arguments after a hook has changed those of a patch; None if that is nothing that our tool can do."""
    own = common.tool_arguments(event)
    command = changed.pop("command", None)
    if command is None or command == to_patch(tool, own):
        return {**own, **TOOLS.to_own(tool, changed)}
    patch = read_patch(command) if isinstance(command, str) else None
    return {**own, **patch.args} if patch and patch.tool == tool else None


def _on_start(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    result = output.read_session_start(run, "SessionStart")
    if result.answer.halt:
        facts.state(CodexStart).stopped = result.answer.reason
    return spill_context(result, facts)


def _handlers(entries: Sequence[HookEntry], facts_of: FactsOf) -> list[tuple[str, HandlerFunction]]:
    """What `continue: false` of SessionStart means: the prompt that began the session is not sent."""

    def stop(event: Event) -> Answer | None:
        start = facts_of(event.stamp).state(CodexStart)
        reason, start.stopped = start.stopped, ""
        return Answer(decision="deny", halt=True, reason=reason) if reason else None

    return [("message:received", stop)]


def _on_request(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    return common.failed_result(run) if run.exit else HookResult()


def _on_called(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    field = "result" if event.name == "tool:completed" else "error"
    return spill_context(output.read_post_tool_use(run, "PostToolUse", field), facts)


def _on_stop(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    """A block is a prompt that says whose it is."""
    result = output.read_stop(run, "Stop")
    inject = result.answer.inject
    if inject is None:
        return result
    facts.prompt_state(CodexStops).count += 1
    words = inject.content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    labelled = Inject(f'<hook_prompt hook_run_id="stop:{entry.id}">{words}</hook_prompt>')
    return replace(result, answer=replace(result.answer, inject=labelled))


def _on_agent_start(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    """`continue: false` keeps no agent from starting."""
    result = output.read_session_start(run, "SubagentStart")
    if result.answer.halt:
        return replace(result, answer=PASS, warning="`continue: false` has no effect on SubagentStart")
    return spill_context(result, facts)


def _on_agent_stop(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    """As Stop; `continue: false` ends the sub-agent, not the turn above it."""
    result = _on_stop(entry, event, run, facts)
    return replace(result, answer=replace(result.answer, halt=False, reason="")) if result.answer.halt else result


def _on_notified(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    return common.failed_result(run) if run.exit else HookResult()


NO_SUCH_PATCH = "a hook has made a patch of it that is more than one change of one file"
_OBSERVED = {
    name: _reads(output.read_observed, name)
    for name in ("SessionEnd", "PreCompact", "PostCompact", "Interrupt", "StopFailure")
}


def _once(name: str, event: str, answer: AnswerReader, **more: Any) -> tuple[EventMapping, ...]:
    return (EventMapping(name, event, answer=answer, **more),)


_TOOL: dict[str, Any] = {"subject": common.tool_name, "fields": _tool_fields}
_CALLED: dict[str, Any] = {"subject": common.tool_name, "fields": _called_fields}
_COMPACTION: dict[str, Any] = {"subject": _trigger, "subjects": ("manual", "auto"), "fields": _only("trigger")}

EVENTS: Events = {
    "SessionStart": _once(
        "SessionStart", "session:started", _on_start, subject=_source,
        subjects=("startup", "resume", "clear", "compact"), fields=lambda event, facts: {"source": _source(event)},
    ),
    "SessionEnd": _once(
        "SessionEnd", "session:ended", _OBSERVED["SessionEnd"], subject=_reason,
        subjects=("clear", "resume", "other"), fields=lambda event, facts: {"reason": _reason(event)},
    ),
    "UserPromptSubmit": _once(
        "UserPromptSubmit", "message:received", _reads(output.read_prompt, "UserPromptSubmit"), accepts=common.is_typed,
        fields=lambda event, facts: {"prompt": common.payload_field(event, "content")},
    ),
    "PreModelRequest": _once(
        "PreModelRequest", "message:before_send", _on_request, accepts=lambda event, facts: not event.stamp.purpose
    ),
    "PreToolUse": _once("PreToolUse", "tool:before_call", _on_call, accepts=common.is_valid, **_TOOL),
    "PermissionRequest": _once(
        "PermissionRequest", "permission:requested", _reads(output.read_permission_request, "PermissionRequest"),
        subject=common.tool_name, fields=_asked_fields,
    ),
    "PostToolUse": (
        *_once("PostToolUse", "tool:completed", _on_called, **_CALLED),
        *_once("PostToolUse", "tool:failed", _on_called, accepts=common.was_run, **_CALLED),
    ),
    "PreCompact": _once("PreCompact", "context:overflow", _OBSERVED["PreCompact"], accepts=common.is_compacting, **_COMPACTION),
    "PostCompact": _once("PostCompact", "session:compacted", _OBSERVED["PostCompact"], **_COMPACTION),
    "Stop": _once("Stop", "turn:complete", _on_stop, accepts=common.ended_by("done"), fields=_stop_fields),
    "StopFailure": _once(
        "StopFailure", "turn:complete", _OBSERVED["StopFailure"], accepts=common.ended_by("error"), fields=_only("error")
    ),
    "Interrupt": _once("Interrupt", "turn:complete", _OBSERVED["Interrupt"], accepts=common.ended_by("interrupted")),
    "SubagentStart": _once(
        "SubagentStart", "task:spawned", _on_agent_start, accepts=common.is_agent, subject=_new_agent, fields=_agent_start_fields,
    ),
    "SubagentStop": _once(
        "SubagentStop", "turn:complete", _on_agent_stop, accepts=common.agent_ended_by("done"),
        subject=lambda event: event.stamp.agent_type, fields=_agent_stop_fields, scope="tree",
    ),
    NOTIFY: _once(NOTIFY, "turn:complete", _on_notified, accepts=common.ended_by("done")),
}  # fmt: skip

DIALECT = Dialect(
    name="codex",
    footprint=FOOTPRINTS["codex"],
    events=EVENTS,
    config=ConfigFormat(read=_read, runs_equal_once=False),
    matching=Matching(matcher_fits=_matcher_fits),
    stdin=_stdin,
    extra_environment=_environment,
    handlers=_handlers,
    tools=TOOLS,
    launch=LaunchRules(
        shells={"posix": ("bash", "sh", "brush"), "windows": ("cmd",)}, variables={"CLAUDE_PROJECT_DIR": "root"}
    ),
    judges_ahead=True,
)
