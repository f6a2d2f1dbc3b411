"""Every event of Claude Code: which of ours it is, what its hooks read, or why there is none."""

from __future__ import annotations

from typing import Any

from cru.core.events.stamp import Event
from cru.core.hooks.dialects.claude import fields as f
from cru.core.hooks.dialects.claude.result import to_hook_result
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import EventMapping, Events
from cru.core.hooks.parsing import common

STARTS = ("startup", "resume", "clear", "compact")
ENDS = ("exit", "clear", "resume", "logout", "prompt_input_exit", "other")
TRIGGERS = ("manual", "auto")
FAILURES = (*dict.fromkeys(f.ERRORS.values()), "server_error", "invalid_request", "unknown")
_WORKTREES = (
    "cru makes the worktree of a sub-agent with git and keeps its changes as a patch; no hook does that in its place"
)
# Events that are none of ours, and why.
UNAVAILABLE: dict[str, str] = {
    "Setup": "cru has no --init and no --maintenance",
    "InstructionsLoaded": "cru does not announce which instructions it reads",
    "UserPromptExpansion": "cru does not announce how a command becomes a prompt; UserPromptSubmit hears of the prompt",
    "MessageDisplay": "cru does not let a command change streamed text",
    "PermissionDenied": "cru has no mode in which a model decides; `permission:resolved` of cru's own hooks hears of every refusal",
    "TaskCreated": "cru keeps its todos as one text; `todo:changed` of cru's own hooks hears of it",
    "TaskCompleted": "cru keeps its todos as one text; `todo:changed` of cru's own hooks hears of it",
    "PreModelSwitch": "cru asks nobody before `/model` changes the model; PostModelSwitch hears of it",
    "TeammateIdle": "cru has no teams of agents",
    "ConfigChange": "cru does not watch settings; `config:changed` of cru's own hooks hears of commands that write one",
    "CwdChanged": "cru stays in one folder",
    "DirectoryAdded": "cru works in one folder",
    "FileChanged": "cru watches the notes of a vault only; `file:changed` of cru's own hooks hears of them",
    "WorktreeCreate": _WORKTREES,
    "WorktreeRemove": _WORKTREES,
    "Elicitation": "what an MCP server asks is shown to the person; Notification tells of it",
    "ElicitationResult": "what the person answers goes to the MCP server as it is",
}
UNGUARDED = frozenset({"PreModelSwitch"})
"""Those of them whose hooks refuse what happens in cru all the same."""


def _awaits(event: Event, facts: SessionFacts) -> bool:
    """Whether somebody is there who is waited for."""
    return facts.is_chat()


def _mapping(name: str, event: str, **more: Any) -> EventMapping:
    return EventMapping(name, event, answer=to_hook_result, **more)


def _once(name: str, event: str, **more: Any) -> tuple[EventMapping, ...]:
    return (_mapping(name, event, **more),)


EVENTS: Events = {
    **{name: (EventMapping(name, unavailable=why, is_unguarded=name in UNGUARDED),) for name, why in UNAVAILABLE.items()},
    "SessionStart": (
        _mapping("SessionStart", "session:started", subject=f.start_source, subjects=STARTS, fields=f.session_start_fields),
        _mapping("SessionStart", "context:cleared", subject=f.always("clear"), subjects=("clear",), fields=f.source_fields("clear")),
        _mapping(
            "SessionStart", "session:compacted", subject=f.always("compact"), subjects=("compact",),
            fields=f.source_fields("compact"),
        ),
    ),
    "SessionEnd": (
        _mapping(
            "SessionEnd", "session:ended", accepts=f.ends_at_prompt, subject=f.always("prompt_input_exit"),
            subjects=("prompt_input_exit",), fields=lambda event, facts: {"reason": "prompt_input_exit"},
        ),
        _mapping(
            "SessionEnd", "session:ended", accepts=lambda event, facts: not f.ends_at_prompt(event, facts), subject=f.end_reason,
            subjects=ENDS,
            fields=lambda event, facts: {"reason": f.end_reason(event)},
        ),
        _mapping(
            "SessionEnd", "context:clearing", subject=f.always("clear"), subjects=("clear",),
            fields=lambda event, facts: {"reason": "clear"},
        ),
    ),
    "UserPromptSubmit": _once("UserPromptSubmit", "message:received", accepts=common.is_typed, fields=f.prompt_fields),
    "PreToolUse": _once("PreToolUse", "tool:before_call", accepts=common.is_valid, subject=common.tool_name, fields=f.tool_fields),
    "PreSkillShellCommand": _once(
        "PreSkillShellCommand", "tool:before_call", accepts=f.is_line_of_prompt_file, subject=common.tool_name,
        fields=f.line_fields,
    ),
    "PermissionRequest": _once("PermissionRequest", "permission:requested", subject=common.tool_name, fields=f.permission_fields),
    "PostToolUse": _once("PostToolUse", "tool:completed", subject=common.tool_name, fields=f.tool_result_fields),
    "PostToolUseFailure": _once(
        "PostToolUseFailure", "tool:failed", accepts=f.was_run, subject=common.tool_name,
        fields=f.tool_failure_fields,
    ),
    "PostToolBatch": _once("PostToolBatch", "tool:batch_completed", fields=f.batch_fields),
    "Notification": (
        _mapping(
            "Notification", "interaction:requested", subject=f.dialog_kind, subjects=f.DIALOG_KINDS, fields=f.notification_fields,
        ),
        _mapping(
            "Notification", "session:idle", accepts=_awaits, subject=f.always("idle_prompt"), subjects=("idle_prompt",),
            fields=f.idle_fields,
        ),
    ),
    "Stop": _once("Stop", "turn:complete", accepts=f.turn_ended_by("done"), fields=f.stop_fields),
    "SubagentStart": _once(
        "SubagentStart", "task:spawned", accepts=common.is_agent, subject=f.new_agent, fields=f.agent_start_fields
    ),
    "SubagentStop": _once(
        "SubagentStop", "turn:complete", accepts=common.agent_ended_by("done"), subject=f.own_agent, fields=f.agent_stop_fields,
        scope="tree",
    ),
    "StopFailure": _once(
        "StopFailure", "turn:complete", accepts=f.turn_ended_by("error"), subject=f.failure_kind, subjects=FAILURES,
        fields=f.stop_failure_fields
    ),
    "PreCompact": _once(
        "PreCompact", "context:overflow", accepts=common.is_compacting, subject=f.compaction_trigger, subjects=TRIGGERS,
        fields=f.pre_compact_fields,
    ),
    "PostModelSwitch": _once(
        "PostModelSwitch", "model:selected", accepts=f.is_switch, subject=f.new_model, fields=f.model_switch_fields
    ),
    "PostCompact": _once("PostCompact", "session:compacted", subject=f.compaction_trigger, subjects=TRIGGERS, fields=f.post_compact_fields),
}  # fmt: skip
