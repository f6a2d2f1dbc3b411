"""What a hook of Codex prints and exits with. Its schemas are strict: an output with a field that they do not know is no output, and the
run counts as failed."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from cru.core.events.answers import PASS, Answer, Change, Inject
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common

BLOCKS = 2


EventName = Literal[
    "SessionStart", "SessionEnd", "UserPromptSubmit", "PreModelRequest", "PreToolUse", "PermissionRequest", "PostToolUse",
    "PreCompact", "PostCompact", "Stop", "Interrupt", "SubagentStart", "SubagentStop",
]  # fmt: skip


class CodexEventOutput(Struct, rename="camel", forbid_unknown_fields=True):
    """hook_event_name: must be there; that of another event is taken, too"""

    hook_event_name: EventName


class CodexContextOutput(CodexEventOutput):
    additional_context: str | None = None


class CodexPreToolUseOutput(CodexContextOutput):
    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None
    updated_input: Any = None


class CodexPostToolUseOutput(CodexContextOutput):
    updated_tool_output: Any = None
    updated_mcp_tool_output: Any = field(default=None, name="updatedMCPToolOutput")


class CodexPermissionDecision(Struct, rename="camel", forbid_unknown_fields=True):
    behavior: Literal["allow", "deny"]
    updated_input: Any = None
    updated_permissions: Any = None
    message: str | None = None
    interrupt: bool = False


class CodexPermissionOutput(CodexEventOutput):
    decision: CodexPermissionDecision | None = None


class CodexReply(Struct, rename="camel", forbid_unknown_fields=True):
    """What every event knows."""

    continue_: bool = field(default=True, name="continue")
    stop_reason: str | None = None
    suppress_output: bool = False
    system_message: str | None = None


class CodexStartReply(CodexReply):
    hook_specific_output: CodexContextOutput | None = None


class CodexPermissionReply(CodexReply):
    hook_specific_output: CodexPermissionOutput | None = None


class CodexStopReply(CodexReply):
    decision: Literal["block"] | None = None
    reason: str | None = None


class CodexPromptReply(CodexStopReply):
    hook_specific_output: CodexContextOutput | None = None


class CodexPostToolReply(CodexStopReply):
    hook_specific_output: CodexPostToolUseOutput | None = None


class CodexPreToolReply(CodexReply):
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None
    hook_specific_output: CodexPreToolUseOutput | None = None


W = TypeVar("W", bound=CodexReply)


def parse_output(
    run: HookRun, kind: type[W], event: str, *, plain: str = "ignored", blocks: bool = True
) -> W | HookResult:
    """The output, or what the run means without one. plain: what becomes of text that is no JSON, "ignored", "context" or "wrong";
    blocks: whether exit status 2 does."""
    if run.exit == BLOCKS and blocks:
        reason = run.stderr.strip()
        return (
            HookResult(Answer(reason=reason))
            if reason
            else HookResult(failed="exit status 2 without a reason on standard error")
        )
    if run.exit:
        return common.failed_result(run)
    text = run.stdout.strip(common.BLANK)
    if not text:
        return kind()
    value, wrong = common.parse_json(text)
    if not wrong and isinstance(value, dict):
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            return HookResult(failed=f"the output does not fit {event}: {error}")
    if plain == "wrong" or text[0] in "{[":
        return HookResult(failed=f"the output of {event} must be a JSON object" + (f": {wrong}" if wrong else ""))
    return HookResult(Answer(context=(text,))) if plain == "context" else kind()


def read_observed(run: HookRun, event: str) -> HookResult:
    """Events that nothing can be said about but `continue: false`."""
    out = parse_output(run, CodexReply, event, blocks=False)
    return out if isinstance(out, HookResult) else _to_result(out, _halt_answer(out))


def read_session_start(run: HookRun, event: str) -> HookResult:
    out = parse_output(run, CodexStartReply, event, plain="context", blocks=False)
    if isinstance(out, HookResult):
        return out
    return _to_result(out, _halt_answer(out) or _context_answer(out.hook_specific_output))


def read_prompt(run: HookRun, event: str) -> HookResult:
    out = parse_output(run, CodexPromptReply, event, plain="context")
    if isinstance(out, HookResult):
        return _with_decision(out, "deny")
    wrong = _check_reason(out, event)
    if wrong and out.continue_:
        return HookResult(failed=wrong)
    if out.decision:
        return _to_result(out, _halt_answer(out) or Answer(decision="deny", reason=out.reason or ""))
    return _to_result(out, _halt_answer(out) or _context_answer(out.hook_specific_output))


def read_pre_tool_use(run: HookRun, event: str) -> HookResult:
    """A rewrite is no leave: the call is decided as if the model had asked for it that way."""
    out = parse_output(run, CodexPreToolReply, event)
    if isinstance(out, HookResult):
        return _with_decision(out, "deny")
    inner = out.hook_specific_output or CodexPreToolUseOutput("PreToolUse")
    own = inner.permission_decision or inner.permission_decision_reason is not None or inner.updated_input is not None
    wrong = _check_unsupported(out) or (_check_decision(inner) if own else _check_older_decision(out))
    if wrong:
        return HookResult(failed=wrong)
    context = _context_answer(inner)
    deny = inner.permission_decision == "deny" if own else out.decision == "block"
    if deny:
        reason = (inner.permission_decision_reason if own else out.reason) or ""
        words = "\n".join((reason.strip(), *context.context))  # a refused call has no other place for context
        return _to_result(out, Answer(decision="deny", reason=words))
    if inner.updated_input is not None:
        return _to_result(out, msgspec.structs.replace(context, changes=(Change("args", "set", inner.updated_input),)))
    return _to_result(out, context)


def read_permission_request(run: HookRun, event: str) -> HookResult:
    """Whoever answers with something that Codex has not got gives no leave: the question stays."""
    out = parse_output(run, CodexPermissionReply, event)
    if isinstance(out, HookResult):
        return _with_decision(out, "deny")
    decision = out.hook_specific_output.decision if out.hook_specific_output else None
    extra = decision and next(
        (key for key, value in _REFUSED.items() if getattr(decision, value) not in (None, False)), ""
    )
    wrong = _check_unsupported(out) or (f"`{extra}` is not supported" if extra else "")
    if wrong:
        return HookResult(failed=wrong)
    if decision is None:
        return _to_result(out, PASS)
    if decision.behavior == "allow":
        return _to_result(out, Answer(decision="allow"))
    reason = (decision.message or "").strip() or "denied by a hook"
    return _to_result(out, Answer(decision="deny", reason=reason))


def read_post_tool_use(run: HookRun, event: str, replaced: str) -> HookResult:
    """`replaced`: the field that a feedback takes the place of. The texts of several hooks add up as context behind an empty result."""
    out = parse_output(run, CodexPostToolReply, event)
    if isinstance(out, HookResult):
        return HookResult(_feedback_answer(out.answer.reason, replaced)) if out.answer.reason else out
    wrong = "`suppressOutput` is not supported" if out.suppress_output else _check_reason(out, event)
    if not out.continue_:  # it stops nothing: the model reads why
        text = (out.reason or "").strip() or out.stop_reason or "PostToolUse hook stopped execution"
        return _to_result(out, _feedback_answer(text, replaced))
    if wrong or (out.reason is not None and not out.decision):
        return HookResult(failed=wrong or "`reason` without `decision`")
    adding = _context_answer(out.hook_specific_output)
    if out.decision:
        feedback = _feedback_answer(out.reason or "", replaced)
        return _to_result(out, msgspec.structs.replace(feedback, context=feedback.context + adding.context))
    inner = out.hook_specific_output
    replaces_output = inner is not None and (
        inner.updated_tool_output is not None or inner.updated_mcp_tool_output is not None
    )
    return _to_result(out, adding, "updatedToolOutput has no effect, as in Codex" if replaces_output else "")


def read_stop(run: HookRun, event: str) -> HookResult:
    """A block is a new prompt; `continue: false` is stronger."""
    out = parse_output(run, CodexStopReply, event, plain="wrong")
    if isinstance(out, HookResult):
        return HookResult(Answer(inject=Inject(out.answer.reason))) if out.answer.reason else out
    if not out.continue_:
        return _to_result(out, _halt_answer(out))
    wrong = _check_reason(out, event)
    if wrong:
        return HookResult(failed=wrong)
    return _to_result(out, Answer(inject=Inject((out.reason or "").strip())) if out.decision else PASS)


_REFUSED = {"updatedInput": "updated_input", "updatedPermissions": "updated_permissions", "interrupt": "interrupt"}


def _to_result(out: CodexReply, answer: Answer | None, warning: str = "") -> HookResult:
    return HookResult(answer or PASS, to_user=out.system_message or "", warning=warning)


def _halt_answer(out: CodexReply) -> Answer | None:
    """What `continue: false` means, None if it is not there."""
    return (
        None
        if out.continue_
        else Answer(decision="deny", halt=True, reason=out.stop_reason or "a hook stopped the turn")
    )


def _context_answer(inner: CodexContextOutput | None) -> Answer:
    text = inner.additional_context if inner else None
    return Answer(context=(text,)) if text else PASS


def _with_decision(result: HookResult, decision: Literal["deny"]) -> HookResult:
    """Exit status 2: its reason, with the decision that it means here."""
    if result.failed or not result.answer.reason:
        return result
    return HookResult(Answer(decision=decision, reason=result.answer.reason))


def _feedback_answer(reason: str, replaced: str) -> Answer:
    return Answer(changes=(Change(replaced, "set", ""),), context=(reason,))


def _check_reason(out: CodexStopReply, event: str) -> str:
    return f"{event}: decision block without a reason" if out.decision and not (out.reason or "").strip() else ""


def _check_unsupported(out: CodexReply) -> str:
    if not out.continue_:
        return "`continue: false` is not supported here"
    if out.stop_reason is not None:
        return "`stopReason` is not supported here"
    return "`suppressOutput` is not supported" if out.suppress_output else ""


def _check_decision(inner: CodexPreToolUseOutput) -> str:
    decision = inner.permission_decision
    if inner.updated_input is not None and decision != "allow":
        return "`updatedInput` needs permissionDecision allow"
    if decision == "allow" and inner.updated_input is None:
        return "permissionDecision allow is supported only together with `updatedInput`"
    if decision == "ask":
        return "permissionDecision ask is not supported"
    if decision == "deny" and not (inner.permission_decision_reason or "").strip():
        return "permissionDecision deny without a reason"
    return "`permissionDecisionReason` without a decision" if decision is None else ""


def _check_older_decision(out: CodexPreToolReply) -> str:
    if out.decision == "approve":
        return "decision approve is not supported"
    if out.decision == "block":
        return "" if (out.reason or "").strip() else "decision block without a reason"
    return "`reason` without `decision`" if out.reason is not None else ""
