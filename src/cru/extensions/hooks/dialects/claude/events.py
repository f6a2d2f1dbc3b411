"""Every event of Claude Code: the moment of ours that it is, what its hooks read, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cru.events.stamp import Event
from cru.extensions.hooks.dialects.claude import fields as f
from cru.extensions.hooks.dialects.claude.result import to_hook_result
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.parsing import common

TYPED = ("user", "queue", "command")

# Events without a moment of ours, and why.
LATER: dict[str, str] = {
    "Setup": "cru has no --init and no --maintenance",
    "InstructionsLoaded": "cru does not announce which instructions it reads",
    "UserPromptExpansion": "cru does not announce how a command becomes a prompt; UserPromptSubmit hears of the prompt",
    "MessageDisplay": "cru does not let a command change streamed text",
    "PermissionDenied": "cru has no mode in which a model decides; `permission:resolved` of cru's own hooks hears of every refusal",
    "SubagentStart": "sub-agents are not available yet",
    "SubagentStop": "sub-agents are not available yet",
    "TaskCreated": "cru keeps its todos as one text; `todo:changed` of cru's own hooks hears of it",
    "TaskCompleted": "cru keeps its todos as one text; `todo:changed` of cru's own hooks hears of it",
    "TeammateIdle": "cru has no teams of agents",
    "ConfigChange": "cru does not watch settings; `config:changed` of cru's own hooks hears of commands that write one",
    "CwdChanged": "cru stays in one folder",
    "DirectoryAdded": "cru works in one folder",
    "FileChanged": "watching files is not available yet",
    "WorktreeCreate": "cru makes no worktrees",
    "WorktreeRemove": "cru makes no worktrees",
    "Elicitation": "MCP servers are not available yet",
    "ElicitationResult": "MCP servers are not available yet",
}

Carry = Callable[[list[str]], None]


def moments(carry: Carry, awaits: Callable[[Event], bool]) -> dict[str, Sequence[EventMapping]]:
    """THE table. `carry` takes context that has no place on the event that it is given on; it goes into the next request. `awaits`:
    whether somebody sits there whose input is awaited."""

    def row(name: str, event: str, **more: Any) -> EventMapping:
        def answer(entry: HookEntry, at: Event, run: CommandResult, about: SessionFacts) -> HookResult:
            return to_hook_result(name, entry, at, run, about, carry)

        return EventMapping(name, event, answer=answer, **more)

    table: dict[str, Sequence[EventMapping]] = {
        name: (EventMapping(name, unavailable=why),) for name, why in LATER.items()
    }
    table["SessionStart"] = (
        row("SessionStart", "session:started", subject=f.opened, fields=f.on_opened),
        row("SessionStart", "context:cleared", subject=f.always("clear"), fields=f.source("clear")),
        row("SessionStart", "session:compacted", subject=f.always("compact"), fields=f.source("compact")),
    )
    table["SessionEnd"] = (
        row("SessionEnd", "session:ended", subject=f.ended, fields=lambda e, a: {"reason": f.ended(e)}),
        row("SessionEnd", "context:clearing", subject=f.always("clear"), fields=lambda e, a: {"reason": "clear"}),
    )
    table["UserPromptSubmit"] = (
        row("UserPromptSubmit", "message:received", accepts=lambda e: e.stamp.source in TYPED, fields=f.prompt),
    )
    table |= _tool_rows(row)
    table["Notification"] = (
        row("Notification", "interaction:requested", subject=f.dialog, fields=f.notice),
        row("Notification", "session:idle", accepts=awaits, subject=f.always("idle_prompt"), fields=f.idle),
    )
    table["Stop"] = (row("Stop", "turn:complete", accepts=f.caused("done"), fields=f.stop),)
    table["StopFailure"] = (
        row("StopFailure", "turn:complete", accepts=f.caused("error"), subject=f.error, fields=f.failure),
    )
    table["PreCompact"] = (row("PreCompact", "context:overflow", subject=f.trigger, fields=f.before_compaction),)
    table["PostCompact"] = (row("PostCompact", "session:compacted", subject=f.trigger, fields=f.after_compaction),)
    return table


def _tool_rows(row: Callable[..., EventMapping]) -> dict[str, Sequence[EventMapping]]:
    return {
        "PreToolUse": (row("PreToolUse", "tool:before_call", subject=common.tool, fields=f.called),),
        "PermissionRequest": (
            row("PermissionRequest", "permission:requested", subject=common.tool, fields=f.question),
        ),
        "PostToolUse": (row("PostToolUse", "tool:completed", subject=common.tool, fields=f.completed),),
        "PostToolUseFailure": (
            row("PostToolUseFailure", "tool:failed", accepts=f.was_run, subject=common.tool, fields=f.failed),
        ),
        "PostToolBatch": (row("PostToolBatch", "tool:batch_completed", fields=f.batch),),
    }
