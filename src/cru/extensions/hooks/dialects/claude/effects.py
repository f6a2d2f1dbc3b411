"""What each event of Claude Code lets its hooks do. THE table is EFFECTS; claude_said reads an output by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import UNSET, Struct, field

from cru.events.answers import Change, Decision
from cru.events.stamp import Event
from cru.extensions.hooks.dialects.claude import output as out
from cru.extensions.hooks.dialects.claude import tools
from cru.extensions.hooks.dialects.claude.output import EventOutput, ParsedOutput
from cru.extensions.hooks.dialects.claude.tools import TOOLS
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.parsing import common

CAP, CAP_VARIABLE = 8, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
BLOCKED = "blocked by a hook"
NOT_YET = "`{}` is not available yet"


class Draft(Struct):
    """An answer while it is put together. odd: what a person should know."""

    decision: Decision = "none"
    halt: bool = False
    reason: str = ""
    changes: list[Change] = field(default_factory=list)
    context: list[str] = field(default_factory=list)
    inject: str = ""
    result: str | None = None
    to_user: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)


class Effect(Struct, frozen=True):
    """What an event's hooks may do. exit2: what status 2 means; `user` shows stderr to the person, `failed` makes it a failure as any
    other · block: what a block does, None: there is nothing to block · more: what the event's own part of the JSON does · plain:
    text that is no JSON is context · context: `additionalContext` has a place · halts: `continue: false` ends the turn."""

    specific: type[EventOutput] = EventOutput
    exit2: Literal["block", "user", "ignored", "failed"] = "ignored"
    block: Callable[[Draft, str, Event, SessionFacts], None] | None = None
    more: Callable[[Draft, ParsedOutput, Event, SessionFacts], None] | None = None
    plain: bool = False
    context: bool = False
    halts: bool = True


def _deny(draft: Draft, why: str, event: Event, facts: SessionFacts) -> None:
    draft.decision, draft.reason, draft.changes = "deny", why, []


def _tell_model(draft: Draft, why: str, event: Event, facts: SessionFacts) -> None:
    draft.context.append(why)


def _end(draft: Draft, why: str, event: Event, facts: SessionFacts) -> None:
    draft.decision, draft.halt, draft.reason = "deny", True, why


def go_on(draft: Draft, why: str, event: Event, facts: SessionFacts) -> None:
    """A Stop hook that blocks: the agent goes on with its reason, up to the cap."""
    most = cap(facts)
    count = blocks(event, facts)
    if facts.blocks.get("stop at") != event.stamp.dispatch_seq:
        facts.blocks["stop at"] = event.stamp.dispatch_seq
        count = facts.blocks["stop"] = count + 1
    if count > most:
        draft.odd.append(
            f"Stop hooks have made the agent go on {most} times in a row, so it stops now ({CAP_VARIABLE})"
        )
    else:
        draft.inject = why


def blocks(event: Event, facts: SessionFacts) -> int:
    """How many times in a row Stop hooks have made the agent go on since the user's prompt."""
    if not getattr(event.payload, "continuations", 0) and facts.blocks.get("stop at") != event.stamp.dispatch_seq:
        facts.blocks.pop("stop", None)
    return facts.blocks.get("stop", 0)


def cap(facts: SessionFacts) -> int:
    given = facts.env.get(CAP_VARIABLE, "")
    return int(given) if given.isascii() and given.isdigit() and int(given) else CAP


def _on_call(draft: Draft, read: ParsedOutput, event: Event, facts: SessionFacts) -> None:
    specific = read.specific
    assert isinstance(specific, out.PreToolUseOutput)
    decision, reason = specific.permission_decision, specific.permission_decision_reason
    if decision is None and read.output is not None and read.output.decision == "approve":
        decision, reason = "allow", read.output.reason
    if decision is not None:
        draft.decision = "ask" if decision == "defer" else decision
        draft.reason = "" if decision == "allow" else reason or (BLOCKED if decision == "deny" else "")
    if specific.updated_input is not None and draft.decision != "deny":
        changed = TOOLS.to_own(common.tool(event), specific.updated_input)
        draft.changes.append(Change("args", "set", changed))


def _on_question(draft: Draft, read: ParsedOutput, event: Event, facts: SessionFacts) -> None:
    specific = read.specific
    assert isinstance(specific, out.PermissionRequestOutput)
    ruling = specific.decision
    if ruling is None:
        return
    if ruling.updated_permissions:
        draft.odd.append(NOT_YET.format("updatedPermissions"))
    if ruling.behavior == "deny":
        draft.decision, draft.reason, draft.halt = "deny", ruling.message or BLOCKED, ruling.interrupt
    elif _differs(ruling.updated_input, event, facts):
        draft.odd.append(
            f"{NOT_YET.format('updatedInput')} on PermissionRequest, so its answer does not count: PreToolUse has it"
        )
    else:
        draft.result = "allow"


def _differs(changed: dict[str, Any] | None, event: Event, facts: SessionFacts) -> bool:
    """Whether other arguments are wanted than those that are asked facts."""
    if changed is None:
        return False
    tool, args = common.tool(event), common.args(event)
    return changed not in (args, TOOLS.to_foreign(tool, args, facts.root))


def _on_result(draft: Draft, read: ParsedOutput, event: Event, facts: SessionFacts) -> None:
    specific = read.specific
    assert isinstance(specific, out.PostToolUseOutput)
    output = specific.updated_tool_output
    if output is UNSET and common.tool(event).startswith("mcp__"):
        output = specific.updated_mcp_tool_output
    elif specific.updated_mcp_tool_output is not UNSET:
        draft.odd.append("`updatedMCPToolOutput` has an effect on tools of MCP servers only")
    if output is not UNSET and output is not None:
        draft.changes.append(Change("result", "set", tools.text_of(output)))


def _on_opening(draft: Draft, read: ParsedOutput, event: Event, facts: SessionFacts) -> None:
    if isinstance(read.specific, out.SessionStartOutput) and read.specific.initial_user_message:
        draft.odd.append(NOT_YET.format("initialUserMessage"))


EFFECTS: dict[str, Effect] = {
    "SessionStart": Effect(out.SessionStartOutput, "user", more=_on_opening, plain=True, context=True, halts=False),
    "SessionEnd": Effect(exit2="user", halts=False),
    "UserPromptSubmit": Effect(out.PromptOutput, "block", _deny, plain=True, context=True),
    "PreToolUse": Effect(out.PreToolUseOutput, "block", _deny, _on_call, context=True),
    "PermissionRequest": Effect(out.PermissionRequestOutput, "failed", more=_on_question),
    "PostToolUse": Effect(out.PostToolUseOutput, "block", _tell_model, _on_result, context=True),
    "PostToolUseFailure": Effect(exit2="block", block=_tell_model, context=True),
    "PostToolBatch": Effect(exit2="block", block=_end, context=True),
    "Notification": Effect(context=True, halts=False),
    "Stop": Effect(exit2="block", block=go_on, context=True),
    "StopFailure": Effect(halts=False),
    "PreCompact": Effect(exit2="block", block=_deny),
    "PostCompact": Effect(exit2="user"),
}
