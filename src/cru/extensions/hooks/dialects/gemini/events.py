"""The events of Gemini CLI: what its hooks read, and what their outputs mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from cru.events.answers import PASS, Answer, Change, Inject
from cru.events.payloads import MessageBeforeSend, ToolsSelect
from cru.events.stamp import Event
from cru.extensions.hooks.dialects.gemini import model
from cru.extensions.hooks.dialects.gemini.output import GeminiOutput, read, stopping, told
from cru.extensions.hooks.model import tool_names
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.parsing import common
from cru.extensions.hooks.parsing.spill import spilled

RETRIED, RETRIES = "gemini retry", 8
"""The counter of AfterAgent hooks that made the running turn go on, and where that ends."""
REASONS = ("exit", "clear", "logout", "prompt_input_exit")
NOT_YET = model.NOT_YET
Meaning = Callable[[Event[Any], GeminiOutput, SessionFacts], HookResult]


def _field(event: Event, name: str) -> Any:
    return getattr(event.payload, name, "")


def _source(event: Event) -> str:
    return "resume" if _field(event, "resumed") else str(_field(event, "source") or "startup")


def _reason(event: Event) -> str:
    reason = str(_field(event, "reason"))
    return reason if reason in REASONS else "other"


def _trigger(event: Event) -> str:
    return str(_field(event, "trigger"))


def _tool_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    tool = common.tool(event)
    args = tool_names.to_foreign_arguments("gemini", tool, common.args(event), about.cwd)
    return {"tool_name": tool_names.foreign_name("gemini", tool), "tool_input": args}


def _called_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    text, failed = _field(event, "result") or _field(event, "error"), event.name == "tool:failed"
    response: dict[str, Any] = {"llmContent": text, "returnDisplay": text}
    return {
        **_tool_fields(event, about),
        "tool_response": {**response, "error": {"message": text}} if failed else response,
    }


def _asked_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    kind = {"shell": "exec", "write": "edit", "fetch": "info"}.get(str(_field(event, "kind")), "info")
    tool = tool_names.foreign_name("gemini", common.tool(event))
    details = {"type": kind, "title": tool, "tool_name": tool, "detail": getattr(payload, "detail", "")}
    return {"notification_type": "ToolPermission", "message": f"{tool} needs leave", "details": details}


def _agent_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    active = about.blocks.get(RETRIED, 0) > 0
    return {"prompt": about.prompt, "prompt_response": _field(event, "response"), "stop_hook_active": active}


def _request_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    if isinstance(payload, MessageBeforeSend):
        return {"llm_request": model.request(payload)}
    return {"llm_request": {"model": about.model, "messages": [], "config": {}}}


def _response_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    text = _field(event, "content")
    usage = _field(event, "usage")
    parts = [{"content": {"role": "model", "parts": [text]}, "finishReason": "STOP", "index": 0}]
    spent = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.input + usage.output,
    }
    return {
        **_request_fields(event, about),
        "llm_response": {"text": text, "candidates": parts, "usageMetadata": spent},
    }


def _select_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    known = [tool_names.foreign_name("gemini", name) for name in _field(event, "tools")]
    return {**_request_fields(event, about), "available_tools": known}


# what outputs mean ----------------------------------------------------------------------------------------------------------------


def _means(meaning: Meaning) -> Callable[[HookEntry, Event, CommandResult, SessionFacts], HookResult]:
    def answer(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
        out = read(run)
        return out if isinstance(out, HookResult) else spilled(meaning(event, out, about), about)

    return answer


def _observes(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    return told(out, PASS)


def _adds(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    return told(out, Answer(context=out.context))


def _before_agent(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    return told(out, stopping(out) or Answer(context=out.context))


def _after_agent(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    odd = f"clearContext {NOT_YET}" if out.specific.get("clearContext") is True else ""
    if not out.goes_on or out.decision != "deny":
        return told(out, stopping(out), odd)
    if about.blocks.get(RETRIED, 0) >= RETRIES:
        return told(out, PASS, odd, f"has asked for {RETRIES} retries of one prompt; the turn ends here")
    about.blocks[RETRIED] = about.blocks.get(RETRIED, 0) + 1
    return told(out, Answer(inject=Inject(out.why)), odd)


def _before_model(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    payload, patch = event.payload, out.specific.get("llm_request")
    odd = f"llm_response {NOT_YET}: the model is asked" if out.specific.get("llm_response") else ""
    stop = stopping(out)
    if stop or not isinstance(patch, Mapping) or not isinstance(payload, MessageBeforeSend):
        return told(out, stop, odd)
    made, without = model.changes(payload, patch)
    return told(out, Answer(changes=tuple(made)) if made else PASS, odd, *without)


def _after_model(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    """The whole reply, once: what was streamed has been seen."""
    stop = stopping(out)
    odd = f"llm_response {NOT_YET} in AfterModel" if out.specific.get("llm_response") else ""
    return told(out, Answer(decision="deny", halt=True, reason=stop.reason) if stop else PASS, odd)


def _before_tool(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    """`allow` is no leave: it only says nothing against the call."""
    stop = stopping(out)
    if stop is not None:
        return told(out, stop)
    given, odd, changes = out.specific.get("tool_input"), "", tuple[Change, ...]()
    if isinstance(given, dict):
        changes = (Change("args", "merge", tool_names.to_own_arguments("gemini", common.tool(event), given)),)
    elif given is not None:
        odd = "tool_input is no object and is left out"
    decision = out.decision
    return told(out, Answer(decision=decision, reason=out.reason if decision == "ask" else "", changes=changes), odd)


def _after_tool(event: Event, out: GeminiOutput, about: SessionFacts) -> HookResult:
    """A refusal hides what the tool gave: the model reads the reason in its place."""
    text = "result" if event.name == "tool:completed" else "error"
    odd = f"tailToolCallRequest {NOT_YET}" if out.specific.get("tailToolCallRequest") else ""
    if not out.goes_on:
        hidden = (Change(text, "set", out.why),) if out.decision == "deny" else ()
        return told(out, Answer(decision="deny", halt=True, reason=out.why, changes=hidden), odd)
    if out.decision == "deny":
        return told(out, Answer(changes=(Change(text, "set", ""),), context=(out.why, *out.context)), odd)
    return told(out, Answer(context=out.context), odd)


class _Selected(Struct):
    """What the hooks of one firing have said so far. tools: those there are · allowed: in our words · nothing: mode NONE was said."""

    seq: int
    tools: tuple[str, ...]
    allowed: set[str] = field(default_factory=set)
    nothing: bool = False


class _Selection:
    """BeforeToolSelection: what the hooks of one firing allow is added up. They run one after another (gemini_config.CHAINED)."""

    def __init__(self) -> None:
        self._agents: dict[str, _Selected] = {}

    def __call__(self, event: Event[ToolsSelect], out: GeminiOutput, about: SessionFacts) -> HookResult:
        config = out.specific.get("toolConfig")
        now = self._now(event)
        if not isinstance(config, dict):
            return told(out, PASS)
        odd = f"toolConfig.mode ANY {NOT_YET}: the model may also call nothing" if config.get("mode") == "ANY" else ""
        wanted = config.get("allowedFunctionNames")
        now.nothing |= config.get("mode") == "NONE"
        now.allowed |= (
            {tool_names.own_name("gemini", str(name)) for name in wanted} if isinstance(wanted, list) else set()
        )
        if not now.nothing and not now.allowed:
            return told(out, PASS, odd)
        kept = () if now.nothing else tuple(name for name in now.tools if name in now.allowed)
        return told(out, Answer(changes=(Change("tools", "set", kept),)), odd)

    def _now(self, event: Event[ToolsSelect]) -> _Selected:
        stamp, payload = event.stamp, event.payload
        known = self._agents.get(stamp.agent_id)
        if known is None or known.seq != stamp.dispatch_seq:
            known = self._agents[stamp.agent_id] = _Selected(stamp.dispatch_seq, payload.tools)
        return known


def _ran(event: Event) -> bool:
    return _field(event, "which") in ("failed", "timeout")


def _once(name: str, event: str, fields: Any, meaning: Meaning, **more: Any) -> tuple[EventMapping, ...]:
    return (EventMapping(name, event, fields=fields, answer=_means(meaning), **more),)


_TOOL: dict[str, Any] = {"subject": common.tool}

_MOMENTS: dict[str, tuple[EventMapping, ...]] = {
    "SessionStart": _once("SessionStart", "session:started", lambda e, a: {"source": _source(e)}, _adds, subject=_source),
    "SessionEnd": _once("SessionEnd", "session:ended", lambda e, a: {"reason": _reason(e)}, _observes, subject=_reason),
    "BeforeAgent": _once(
        "BeforeAgent", "message:received", lambda e, a: {"prompt": _field(e, "content")}, _before_agent,
        accepts=lambda event: event.stamp.source in common.TYPED,
    ),
    "AfterAgent": _once(
        "AfterAgent", "turn:complete", _agent_fields, _after_agent, accepts=lambda event: _field(event, "cause") == "done"
    ),
    "BeforeModel": _once(
        "BeforeModel", "message:before_send", _request_fields, _before_model, accepts=lambda event: not event.stamp.purpose
    ),
    "AfterModel": _once("AfterModel", "agent:responded", _response_fields, _after_model),
    "BeforeTool": _once("BeforeTool", "tool:before_call", _tool_fields, _before_tool, **_TOOL),
    "AfterTool": (
        *_once("AfterTool", "tool:completed", _called_fields, _after_tool, **_TOOL),
        *_once("AfterTool", "tool:failed", _called_fields, _after_tool, accepts=_ran, **_TOOL),
    ),
    "PreCompress": _once("PreCompress", "context:overflow", lambda e, a: {"trigger": _trigger(e)}, _observes, subject=_trigger),
    "Notification": _once(
        "Notification", "permission:requested", _asked_fields, _observes, subject=lambda event: "ToolPermission"
    ),
}  # fmt: skip


def moments() -> Mapping[str, Sequence[EventMapping]]:
    """The table; each session has its own, since hooks of BeforeToolSelection share what they have said."""
    selection = _once("BeforeToolSelection", "tools:select", _select_fields, _Selection())
    return {**_MOMENTS, "BeforeToolSelection": selection}
