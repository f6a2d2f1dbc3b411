"""Turn the output of a Claude Code hook into cru's answer. The table EFFECTS says what the hooks of each event may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import UNSET, Struct, field

from cru.core.events.answers import Change, Decision, PermissionUpdate
from cru.core.events.stamp import Event
from cru.core.hooks.dialects.claude import labels, permission_updates, tools
from cru.core.hooks.dialects.claude import output_schema as out
from cru.core.hooks.dialects.claude.output_schema import ClaudeEventOutput, ParsedClaudeOutput
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.parsing import common

CAP, CAP_VARIABLE = 8, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
BLOCKED = "blocked by a hook"
LINE_WAITS = "the hook asked for approval, which a command's text cannot wait for"


class ClaudeStops(Struct):
    """The Stop hooks that made the agent go on since the user's prompt.

    count: how many times in a row
    last_dispatch: the dispatch that was counted last
    """

    count: int = 0
    last_dispatch: int = -1


class AnswerDraft(Struct):
    """An answer while it is put together.

    warnings: what a person should know of the output
    failed: why nothing of it counts
    """

    decision: Decision = "none"
    halt: bool = False
    reason: str = ""
    changes: list[Change] = field(default_factory=list)
    context: list[str] = field(default_factory=list)
    inject: str = ""
    result: str | None = None
    updates: list[PermissionUpdate] = field(default_factory=list)
    to_user: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failed: str = ""


class EventEffect(Struct, frozen=True):
    """What the hooks of an event may do.

    specific: the event's own part of the JSON
    exit2: what status 2 means; `user` shows stderr to the person, `failed` makes it a failure as any other
    block: what a block does; None: there is nothing to block
    label: how the model reads who blocks and why (labels.py); "" = the reason alone, which no model reads
    more: what the event's own part of the JSON does
    plain: whether text that is no JSON is context
    context: whether `additionalContext` has a place
    goes_on: whether `additionalContext` makes the agent go on, as a block does
    halts: whether `continue: false` ends the turn
    ends_agent: whether it ends the sub-agent, with what that has said last
    """

    specific: type[ClaudeEventOutput] = ClaudeEventOutput
    exit2: Literal["block", "user", "ignored", "failed"] = "ignored"
    block: Callable[[AnswerDraft, str, Event, SessionFacts], None] | None = None
    label: str = ""
    more: Callable[[AnswerDraft, ParsedClaudeOutput, Event, SessionFacts], None] | None = None
    plain: bool = False
    context: bool = False
    goes_on: bool = False
    halts: bool = True
    ends_agent: bool = False


def _deny(draft: AnswerDraft, why: str, event: Event, facts: SessionFacts) -> None:
    draft.decision, draft.reason, draft.changes = "deny", why, []


def _tell_model(draft: AnswerDraft, why: str, event: Event, facts: SessionFacts) -> None:
    draft.context.append(why)


def _end(draft: AnswerDraft, why: str, event: Event, facts: SessionFacts) -> None:
    draft.decision, draft.halt, draft.reason = "deny", True, why


def continue_turn(draft: AnswerDraft, why: str, event: Event, facts: SessionFacts) -> None:
    """A Stop hook that blocks: the agent goes on with its reason, up to the cap."""
    most = continuation_limit(facts)
    count = count_continuations(event, facts)
    stops = facts.prompt_state(ClaudeStops)
    if stops.last_dispatch != event.stamp.dispatch_seq:
        stops.last_dispatch = event.stamp.dispatch_seq
        count = stops.count = count + 1
    if count > most:
        draft.warnings.append(
            f"Stop hooks have made the agent go on {most} times in a row, so it stops now ({CAP_VARIABLE})"
        )
    else:
        draft.inject = why


def count_continuations(event: Event, facts: SessionFacts) -> int:
    """How many times in a row Stop hooks have made the agent go on since the user's prompt."""
    stops = facts.prompt_state(ClaudeStops)
    if not getattr(event.payload, "continuations", 0) and stops.last_dispatch != event.stamp.dispatch_seq:
        stops.count = 0
    return stops.count


def continuation_limit(facts: SessionFacts) -> int:
    limit = facts.settings_env.get(CAP_VARIABLE) or facts.env.get(CAP_VARIABLE, "")
    return int(limit) if limit.isascii() and limit.isdigit() and int(limit) else CAP


def _on_call(draft: AnswerDraft, read: ParsedClaudeOutput, event: Event, facts: SessionFacts) -> None:
    specific = read.specific_as(out.ClaudePreToolUseOutput)
    decision, reason = specific.permission_decision, specific.permission_decision_reason
    if decision is None and read.output is not None and read.output.decision == "approve":
        decision, reason = "allow", read.output.reason
    if decision is not None:
        draft.decision = "ask" if decision == "defer" else decision
        refusal = labels.block_text(labels.REFUSAL, event, reason or BLOCKED, facts) if decision == "deny" else ""
        draft.reason = "" if decision == "allow" else refusal or reason or ""
    if specific.updated_input is not None and draft.decision != "deny":
        changed = TOOLS.to_own(common.tool_name(event), specific.updated_input)
        draft.changes.append(Change("args", "set", changed))


def _on_line(draft: AnswerDraft, read: ParsedClaudeOutput, event: Event, facts: SessionFacts) -> None:
    """Whatever a hook of a `!` line asks for but a leave refuses it: nobody can be asked while a text is put together, and the line is
    not changed. A leave adds nothing: rules judge the line all the same."""
    raw: dict[str, Any] = (read.output.hook_specific_output if read.output is not None else None) or {}
    answered = raw.get("decision")
    ruling: dict[str, Any] = answered if isinstance(answered, dict) else {}
    decision = raw.get("permissionDecision") or ruling.get("behavior")
    reason = raw.get("permissionDecisionReason") or ruling.get("message") or ""
    why = {"deny": reason or BLOCKED, "ask": LINE_WAITS, "defer": LINE_WAITS}.get(str(decision), "")
    if not why and any((raw | ruling).get(key) is not None for key in ("updatedInput", "updatedPermissions")):
        why = "the hook asked for a change, which is not made here"
    if why:
        draft.decision = "deny"
        draft.reason = f"{reason}; {why}" if reason and why != reason else why


def _on_question(draft: AnswerDraft, read: ParsedClaudeOutput, event: Event, facts: SessionFacts) -> None:
    specific = read.specific_as(out.ClaudePermissionRequestOutput)
    ruling = specific.decision
    if ruling is None:
        return
    if ruling.behavior == "deny":
        if ruling.updated_permissions or ruling.updated_input:
            draft.warnings.append("`updatedInput` and `updatedPermissions` count beside an allow only")
        draft.decision, draft.reason, draft.halt = (
            "deny",
            common.spill_text(ruling.message or BLOCKED, facts),
            ruling.interrupt,
        )
    else:
        _allow(draft, ruling, event, facts)


def _allow(draft: AnswerDraft, ruling: out.ClaudePermissionDecision, event: Event, facts: SessionFacts) -> None:
    """A leave, perhaps for other arguments than those that are asked about, and perhaps for more than this call. What cannot be read
    of it voids it."""
    changed = ruling.updated_input
    if changed is not None and not isinstance(changed, dict):
        draft.failed = "the output does not fit: `updatedInput` is no object"
        return
    if ruling.updated_permissions is not None:
        try:
            parsed = permission_updates.read_updates(ruling.updated_permissions, facts)
        except permission_updates.BadUpdates as error:
            draft.failed = str(error)
            return
        draft.updates += parsed.updates
        draft.warnings += parsed.warnings
    draft.decision = "allow"
    tool, args = common.tool_name(event), common.tool_arguments(event)
    if changed is not None and changed not in (args, tools.call_fields(tool, args, "", facts)["tool_input"]):
        draft.changes.append(Change("args", "set", TOOLS.to_own(tool, changed)))


def _on_result(draft: AnswerDraft, read: ParsedClaudeOutput, event: Event, facts: SessionFacts) -> None:
    specific = read.specific_as(out.ClaudePostToolUseOutput)
    output = specific.updated_tool_output
    if output is UNSET and TOOLS.foreign_name(common.tool_name(event)).startswith("mcp__"):
        output = specific.updated_mcp_tool_output
    elif specific.updated_mcp_tool_output is not UNSET:
        draft.warnings.append("`updatedMCPToolOutput` has an effect on tools of MCP servers only")
    if output is not UNSET and output is not None:
        draft.changes.append(Change("result", "set", tools.result_text(output)))


def _on_opening(draft: AnswerDraft, read: ParsedClaudeOutput, event: Event, facts: SessionFacts) -> None:
    """Have the agent answer `initialUserMessage` before the prompt that begins a one-shot run."""
    text = read.specific_as(out.ClaudeSessionStartOutput).initial_user_message
    if text and (facts.is_chat() or not event.row.inject):
        draft.warnings.append("`initialUserMessage` has an effect at the start of a one-shot run only")
    elif text:
        draft.inject = text


EFFECTS: dict[str, EventEffect] = {
    "SessionStart": EventEffect(
        out.ClaudeSessionStartOutput, "user", more=_on_opening, plain=True, context=True, halts=False
    ),
    "SessionEnd": EventEffect(exit2="user", halts=False),
    "UserPromptSubmit": EventEffect(out.ClaudePromptOutput, "block", _deny, plain=True, context=True),
    "PreToolUse": EventEffect(out.ClaudePreToolUseOutput, "block", _deny, labels.REFUSAL, _on_call, context=True),
    "PreSkillShellCommand": EventEffect(out.ClaudePreToolUseOutput, "block", _deny, more=_on_line),
    "PermissionRequest": EventEffect(out.ClaudePermissionRequestOutput, "failed", more=_on_question),
    "PostToolUse": EventEffect(
        out.ClaudePostToolUseOutput, "block", _tell_model, labels.OBJECTION, _on_result, context=True
    ),
    "PostToolUseFailure": EventEffect(
        exit2="block", block=_tell_model, label=labels.OBJECTION, context=True, halts=False
    ),
    "PostToolBatch": EventEffect(exit2="block", block=_end, context=True),
    "Notification": EventEffect(context=True, halts=False),
    "Stop": EventEffect(exit2="block", block=continue_turn, label=labels.FEEDBACK, context=True, goes_on=True),
    "SubagentStart": EventEffect(exit2="user", context=True, halts=False),
    "SubagentStop": EventEffect(
        exit2="block",
        block=continue_turn,
        label=labels.FEEDBACK,
        context=True,
        goes_on=True,
        halts=False,
        ends_agent=True,
    ),
    "StopFailure": EventEffect(halts=False),
    "PreCompact": EventEffect(exit2="block", block=_deny),
    "PostModelSwitch": EventEffect(exit2="user", plain=True, context=True, halts=False),
    "PostCompact": EventEffect(exit2="user"),
}
