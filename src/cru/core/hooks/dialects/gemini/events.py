"""The events of Gemini CLI: what its hooks read, and what their outputs mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.base.values.mcp_names import split_name
from cru.core.events.answers import PASS, Answer, Change, Inject
from cru.core.events.payloads import MessageBeforeSend, ToolsSelect
from cru.core.events.stamp import Event
from cru.core.hooks.dialects.gemini import model
from cru.core.hooks.dialects.gemini.output import GeminiOutput, parse_output, stop_answer, to_result
from cru.core.hooks.dialects.gemini.permissions import TOOLS
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import EventMapping, Events
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common
from cru.core.hooks.parsing.common import spill_text

CONTEXT = "<hook_context>{}</hook_context>"
RETRIES = 8
"""So many AfterAgent hooks may make a turn go on."""
REASONS = ("exit", "clear", "logout", "prompt_input_exit")
NOT_YET = model.NOT_YET
Meaning = Callable[[Event[Any], GeminiOutput, SessionFacts], HookResult]


class GeminiRetries(Struct):
    """How many AfterAgent hooks made the running turn go on."""

    count: int = 0


def _source(event: Event) -> str:
    return (
        "resume" if common.payload_field(event, "resumed") else str(common.payload_field(event, "source") or "startup")
    )


def _reason(event: Event) -> str:
    reason = str(common.payload_field(event, "reason"))
    return reason if reason in REASONS else "other"


def _trigger(event: Event) -> str:
    return str(common.payload_field(event, "trigger"))


def _tool_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    tool = common.tool_name(event)
    args = TOOLS.to_foreign(tool, common.tool_arguments(event), facts.root)
    server = split_name(tool)
    context = {} if server is None else {"mcp_context": {"server_name": server[0], "tool_name": server[1]}}
    return {"tool_name": TOOLS.foreign_name(tool), "tool_input": args, **context}


def _called_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    text, failed = (
        common.payload_field(event, "result") or common.payload_field(event, "error"),
        event.name == "tool:failed",
    )
    response: dict[str, Any] = {"llmContent": text, "returnDisplay": text}
    return {
        **_tool_fields(event, facts),
        "tool_response": {**response, "error": {"message": text}} if failed else response,
    }


def _asked_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    payload = event.payload
    kind = {"shell": "exec", "write": "edit", "fetch": "info"}.get(str(common.payload_field(event, "kind")), "info")
    tool = TOOLS.foreign_name(common.tool_name(event))
    details = {"type": kind, "title": tool, "tool_name": tool, "detail": getattr(payload, "detail", "")}
    return {"notification_type": "ToolPermission", "message": f"{tool} needs leave", "details": details}


def _agent_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    active = facts.prompt_state(GeminiRetries).count > 0
    return {
        "prompt": facts.prompt,
        "prompt_response": common.payload_field(event, "response"),
        "stop_hook_active": active,
    }


def _request_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    payload = event.payload
    if isinstance(payload, MessageBeforeSend):
        return {"llm_request": model.to_request(payload)}
    return {"llm_request": {"model": facts.model, "messages": [], "config": {}}}


def _response_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    text = common.payload_field(event, "content")
    usage = common.payload_field(event, "usage")
    parts = [{"content": {"role": "model", "parts": [text]}, "finishReason": "STOP", "index": 0}]
    spent = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.input + usage.output,
    }
    return {
        **_request_fields(event, facts),
        "llm_response": {"text": text, "candidates": parts, "usageMetadata": spent},
    }


def _select_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    known = [TOOLS.foreign_name(name) for name in common.payload_field(event, "tools")]
    return {**_request_fields(event, facts), "available_tools": known}


# what outputs mean ----------------------------------------------------------------------------------------------------------------


def _means(meaning: Meaning) -> Callable[[HookEntry, Event, HookRun, SessionFacts], HookResult]:
    def answer(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
        out = parse_output(run)
        return out if isinstance(out, HookResult) else _labelled(meaning(event, out, facts), out, facts)

    return answer


def _labelled(result: HookResult, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    """What the model reads as context says that it is a hook's; what is too long stands in a file."""
    context = []
    for text in result.answer.context:
        label = CONTEXT if text in out.context else "{}"
        context.append(label.format(spill_text(text, facts)))
    return replace(result, answer=replace(result.answer, context=tuple(context)))


def _observes(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    return to_result(out, PASS)


def _adds(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    return to_result(out, Answer(context=out.context))


def _before_agent(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    return to_result(out, stop_answer(out) or Answer(context=out.context))


def _after_agent(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    warning = f"clearContext {NOT_YET}" if out.specific.get("clearContext") is True else ""
    if not out.goes_on or out.decision != "deny":
        return to_result(out, stop_answer(out), warning)
    retries = facts.prompt_state(GeminiRetries)
    if retries.count >= RETRIES:
        return to_result(out, PASS, warning, f"has asked for {RETRIES} retries of one prompt; the turn ends here")
    retries.count += 1
    return to_result(out, Answer(inject=Inject(out.why)), warning)


def _before_model(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    """A reply in the model's place: the request is not made, and its text is what the person reads."""
    payload, patch, reply = event.payload, out.specific.get("llm_request"), out.specific.get("llm_response")
    stop = Answer(decision="deny", reason=_reply_text(reply)) if reply and out.goes_on else stop_answer(out)
    if stop or not isinstance(patch, Mapping) or not isinstance(payload, MessageBeforeSend):
        return to_result(out, stop)
    changes, without = model.read_changes(payload, patch)
    return to_result(out, Answer(changes=tuple(changes)) if changes else PASS, *without)


def _after_model(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    """The whole reply, once: what was streamed has been seen, and another text is told. In the place of calls it ends the turn: they are
    not to run."""
    stop, reply = stop_answer(out), out.specific.get("llm_response")
    if not stop and reply and not common.payload_field(event, "tool_calls"):
        text = _reply_text(reply)
        return to_result(
            out, Answer(changes=(Change("display", "set", text),)), f"has another text for this reply: {text}"
        )
    reason = stop.reason if stop else _reply_text(reply) if reply else ""
    return to_result(out, Answer(decision="deny", halt=True, reason=reason) if reason else PASS)


def _reply_text(reply: object) -> str:
    text = model.text(reply)
    return "a hook answered in the model's place, without a text" if text is None else text


def _before_tool(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    """`allow` is no leave: it only says nothing against the call."""
    stop = stop_answer(out)
    if stop is not None:
        return to_result(out, stop)
    tool_input, warning, changes = out.specific.get("tool_input"), "", tuple[Change, ...]()
    if isinstance(tool_input, dict):
        changes = (Change("args", "merge", TOOLS.to_own(common.tool_name(event), tool_input)),)
    elif tool_input is not None:
        warning = "tool_input is no object and is left out"
    decision = out.decision
    return to_result(
        out, Answer(decision=decision, reason=out.reason if decision == "ask" else "", changes=changes), warning
    )


def _after_tool(event: Event, out: GeminiOutput, facts: SessionFacts) -> HookResult:
    """A refusal hides what the tool gave: the model reads the reason in its place."""
    text = "result" if event.name == "tool:completed" else "error"
    warning = f"tailToolCallRequest {NOT_YET}" if out.specific.get("tailToolCallRequest") else ""
    if not out.goes_on:
        hidden = (Change(text, "set", out.why),) if out.decision == "deny" else ()
        return to_result(out, Answer(decision="deny", halt=True, reason=out.why, changes=hidden), warning)
    if out.decision == "deny":
        return to_result(out, Answer(changes=(Change(text, "set", ""),), context=(out.why, *out.context)), warning)
    return to_result(out, Answer(context=out.context), warning)


class _ToolSelection(Struct):
    """What the hooks of one firing of BeforeToolSelection have said so far.

    seq: the firing
    tools: those there are
    allowed: of these, in our words
    nothing: whether a hook said mode NONE
    """

    seq: int
    tools: tuple[str, ...]
    allowed: set[str] = field(default_factory=set)
    nothing: bool = False


class ToolSelections(Struct):
    """The selections of a session, by agent."""

    by_agent: dict[str, _ToolSelection] = field(default_factory=dict)

    def current(self, event: Event[ToolsSelect]) -> _ToolSelection:
        stamp, payload = event.stamp, event.payload
        known = self.by_agent.get(stamp.agent_id)
        if known is None or known.seq != stamp.dispatch_seq:
            known = self.by_agent[stamp.agent_id] = _ToolSelection(stamp.dispatch_seq, payload.tools)
        return known


def _select_tools(event: Event[ToolsSelect], out: GeminiOutput, facts: SessionFacts) -> HookResult:
    """What the hooks of one firing allow is added up. They run one after another (config.CHAINED)."""
    config = out.specific.get("toolConfig")
    selection = facts.state(ToolSelections).current(event)
    if not isinstance(config, dict):
        return to_result(out, PASS)
    warning = f"toolConfig.mode ANY {NOT_YET}: the model may also call nothing" if config.get("mode") == "ANY" else ""
    names = config.get("allowedFunctionNames")
    selection.nothing |= config.get("mode") == "NONE"
    selection.allowed |= {TOOLS.own_name(str(name)) for name in names} if isinstance(names, list) else set()
    if not selection.nothing and not selection.allowed:
        return to_result(out, PASS, warning)
    kept = () if selection.nothing else tuple(name for name in selection.tools if name in selection.allowed)
    return to_result(out, Answer(changes=(Change("tools", "set", kept),)), warning)


def _once(name: str, event: str, fields: Any, meaning: Meaning, **more: Any) -> tuple[EventMapping, ...]:
    return (EventMapping(name, event, fields=fields, answer=_means(meaning), **more),)


_TOOL: dict[str, object] = {"subject": common.tool_name}

EVENTS: Events = {
    "SessionStart": _once(
        "SessionStart", "session:started", lambda event, facts: {"source": _source(event)}, _adds, subject=_source,
        subjects=("startup", "resume", "clear", "compact"),
    ),
    "SessionEnd": _once(
        "SessionEnd", "session:ended", lambda event, facts: {"reason": _reason(event)}, _observes, subject=_reason,
        subjects=(*REASONS, "resume", "other"),
    ),
    "BeforeAgent": _once(
        "BeforeAgent", "message:received", lambda event, facts: {"prompt": common.payload_field(event, "content")}, _before_agent,
        accepts=common.is_typed,
    ),
    "AfterAgent": _once(
        "AfterAgent", "turn:complete", _agent_fields, _after_agent, accepts=common.ended_by("done")
    ),
    "BeforeModel": _once(
        "BeforeModel", "message:before_send", _request_fields, _before_model, accepts=lambda event, facts: not event.stamp.purpose
    ),
    "AfterModel": _once("AfterModel", "agent:responded", _response_fields, _after_model, scope="tree"),
    "BeforeTool": _once("BeforeTool", "tool:before_call", _tool_fields, _before_tool, accepts=common.is_valid, **_TOOL),
    "AfterTool": (
        *_once("AfterTool", "tool:completed", _called_fields, _after_tool, **_TOOL),
        *_once("AfterTool", "tool:failed", _called_fields, _after_tool, accepts=common.was_run, **_TOOL),
    ),
    "PreCompress": _once(
        "PreCompress", "context:overflow", lambda event, facts: {"trigger": _trigger(event)}, _observes, subject=_trigger,
        subjects=("manual", "auto"), accepts=common.is_compacting,
    ),
    "Notification": _once(
        "Notification", "permission:requested", _asked_fields, _observes, subject=lambda event: "ToolPermission",
        subjects=("ToolPermission",),
    ),
    "BeforeToolSelection": _once("BeforeToolSelection", "tools:select", _select_fields, _select_tools),
}  # fmt: skip
