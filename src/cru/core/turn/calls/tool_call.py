"""THE choke point for tool calls: whoever wants a tool run, it goes this road (docs/turn.md, "One tool call").

resolve name → parse arguments → `tool:before_call` → validate the final input → deny rules, mode → a handler's own result →
allow or ask → `tool:called` → run → `tool:completed` or `tool:failed` → spill → log → `tool:settled`.

Three records follow the call: RequestedCall, DecidedCall, FinishedCall.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from msgspec import Struct, json
from msgspec.structs import replace

from cru.core.base.process.errors import StartError
from cru.core.base.values.cancellation import check
from cru.core.base.values.messages import ToolCall
from cru.core.events.answers import PASS, Answer, Inject, add, is_whole_result
from cru.core.events.bus import Bus
from cru.core.events.payloads import (
    FailureKind,
    OutputCached,
    ToolBeforeCall,
    ToolCalled,
    ToolCompleted,
    ToolFailed,
    ToolSettled,
)
from cru.core.events.stream import ToolOutput
from cru.core.tools.output import is_too_long, save_output
from cru.core.tools.protocol import Access, Kind, SecretVariables, Tool, ToolContext, ToolError, ToolResult, ToolTimeout
from cru.core.turn import log_writer
from cru.core.turn.calls import permission, requested_call
from cru.core.turn.calls.permission import DecidedCall, injects_of
from cru.core.turn.calls.requested_call import RequestedCall
from cru.core.turn.parts import Parts, Workplace
from cru.core.turn.prompts import context_texts
from cru.core.turn.system_prompt import guides_of_call

NO_TOOLS = "no tool may be called in this run (no_tool_calls)"
PATH_MOVED = "the path leads elsewhere now than when it was allowed"


class FinishedCall(Struct, frozen=True):
    """A call that is over.

    result: what the tool gave, or why it gave nothing
    text: what handlers made of that
    content: what the model reads
    answer: the fold of all answers on the way
    injects: those of each dispatch
    halted_by: who halted, if `answer` halts
    failure_kind: why it came to nothing; None: it did not
    """

    decided: DecidedCall
    result: ToolResult
    text: str
    content: str
    answer: Answer
    injects: tuple[Inject, ...]
    halted_by: str
    failure_kind: FailureKind | None

    @property
    def call(self) -> ToolCall:
        return self.decided.request.call

    @property
    def is_error(self) -> bool:
        return self.result.is_error

    @property
    def ends_turn(self) -> bool:
        """Whether the turn is over without another request."""
        return self.result.ends_turn and not self.result.is_error


async def decide(
    parts: Parts, call: ToolCall, origin: str = "model", file: dict[str, str] | None = None
) -> DecidedCall:
    """Everything up to the decision; raises nothing that a model, a hook or a tool may cause."""
    check()
    is_off = origin == "model" and parts.settings.no_tool_calls
    tool = None if is_off else parts.tools.find(call.name) or await parts.await_tool(call.name)
    kind: Kind = "tool" if tool is None else tool.kind
    request = RequestedCall(call, tool, kind, origin=origin, prompt_file=file or {})
    if is_off:
        request = requested_call.unfit(request, NO_TOOLS, FailureKind.POLICY)
    else:
        request = requested_call.check_arguments(parts, request)
    before = _before_call(request, {})
    outcome = await parts.bus.dispatch(before)
    if outcome.payload.args is not before.args:
        request = requested_call.check_again(parts, request, outcome.payload.args)
        if before.error and not request.problem and not outcome.answer.stops:
            outcome, request = await requested_call.announce_mended(parts, outcome, request)
        request = requested_call.describe_change(parts, request, before, outcome.changed_by("args"))
    decided = DecidedCall(request, by=outcome.by, env=outcome.payload.env).heard(outcome.answer)
    return await _decide_answered(parts, decided, outcome.failed)


def _before_call(request: RequestedCall, env: dict[str, str]) -> ToolBeforeCall:
    """Return the payload of `tool:before_call`."""
    return ToolBeforeCall(
        request.call.name, request.args, request.call.id, request.kind, env, not request.problem, request.problem, request.origin,
        request.prompt_file,
    )  # fmt: skip


async def _decide_answered(parts: Parts, decided: DecidedCall, has_failed: bool) -> DecidedCall:
    """Decide a call that the handlers of `tool:before_call` have heard of; has_failed: whether one failed that may not."""
    request, answer = decided.request, decided.answer
    if answer.stops:
        refused = permission.refuse(decided, decided.by, answer.reason, has_failed)
        return await permission.announce_resolved(parts.bus, refused)
    if request.problem and answer.result is None:
        return decided.failed(request.failure_kind, request.problem)
    if (tool := request.tool) is not None and not request.problem:
        try:
            is_choice_of_plugin = request.origin != "model" and getattr(tool, "chooses_model", False)
            paths = () if is_choice_of_plugin else tuple(tool.paths(request.args))
            request = replace(request, detail=tool.subject(request.args), paths=paths)
        except Exception as error:  # noqa: BLE001  the boundary around tools: reported
            content = requested_call.report_failure(parts.bus, tool, error)
            return decided.failed(FailureKind.FAILED, content)
    return await _get_permission(parts, replace(decided, request=request))


async def _get_permission(parts: Parts, answered: DecidedCall) -> DecidedCall:
    request = answered.request
    real_paths = _real_paths(parts.place, request.paths)  # as they are judged: a question may take its time
    verdict = permission.judge(parts, request)
    if verdict.decision == "deny":
        refused = answered.refused(FailureKind.POLICY, "policy", verdict.reason)
        return await permission.announce_resolved(parts.bus, refused)
    if answered.answer.result is not None:
        return _take_result(answered)
    decided = await permission.obtain(parts, answered, verdict)
    if decided.rewrite is not None:
        return await _decide_rewritten(parts, decided, decided.rewrite)
    if decided.state != "granted":
        return decided
    env = decided.env and permission.without_outside(parts, decided, answered.by)
    return replace(decided, judged=verdict.decision, real_paths=real_paths, env=env)


async def _decide_rewritten(parts: Parts, decided: DecidedCall, rewrite: RequestedCall) -> DecidedCall:
    """A call that handlers of its question have put in the place of another one: it goes the whole road from the start, once
    (docs/decisions/answers.md). What was allowed or asked of the other one says nothing about it, but the leave that came with it."""
    request = requested_call.check_again(parts, rewrite, rewrite.args)
    earlier = replace(decided.answer, decision="none", reason="", result=None)
    decided = replace(decided, request=request, answer=earlier, rewrite=None)
    if request.problem:
        return decided.failed(request.failure_kind, request.problem)
    before = _before_call(request, decided.env)
    outcome = await parts.bus.dispatch(before)
    if outcome.payload.args is not before.args:
        request = requested_call.check_again(parts, request, outcome.payload.args)
        leave_of = request.leave_of if request.args == before.args else ()
        changed_by = permission.join_owners(request.changed_by, outcome.changed_by("args"))
        request = replace(request, leave_of=leave_of, changed_by=changed_by)
    decided = replace(decided, request=request, by=outcome.by, env=outcome.payload.env).heard(outcome.answer)
    return await _decide_answered(parts, decided, outcome.failed)


async def run(parts: Parts, decided: DecidedCall, finishing: asyncio.Lock | None = None) -> FinishedCall:
    """Run a decided call (or take its outcome), tell the handlers, log the result. One call finishes at a time."""
    check()
    started = time.perf_counter()
    if decided.state == "granted" and _real_paths(parts.place, decided.request.paths) != decided.real_paths:
        decided = decided.refused(FailureKind.POLICY, "policy", PATH_MOVED)
    request, kind, halted_by = decided.request, decided.failure_kind, decided.by
    if decided.state != "granted" or request.tool is None:
        result = ToolResult(decided.content, is_error=kind is not None)
    else:
        called = await parts.bus.dispatch(ToolCalled(request.call.name, request.args, request.call.id))
        if called.answer is not PASS:
            decided = decided.heard(called.answer)
        if called.answer.halt:
            halted_by, kind = called.by, FailureKind.HALTED
            result = ToolResult(f"not run: halted by {halted_by}", is_error=True)
        else:
            result, kind = await _run_tool(parts, request.tool, decided)
    milliseconds = round((time.perf_counter() - started) * 1000, 3)
    async with finishing or nullcontext():
        shown = parts.place.secrets.hide(result) if parts.place.secrets.hidden else result
        return await _finish(parts, decided, shown, kind, milliseconds, halted_by)


async def _run_tool(parts: Parts, tool: Tool, decided: DecidedCall) -> tuple[ToolResult, FailureKind | None]:
    request, place = decided.request, parts.place
    emit: Callable[[str], None] = lambda text: parts.bus.stream.tell(ToolOutput(request.call.id, text))  # noqa: E731
    secrets = SecretVariables() if request.origin == "user" else place.secrets
    env = {**(secrets.without(place.env) if secrets.names else place.env), **decided.env}
    context = ToolContext(request.call.id, place.root, parts.store.folder, env, emit, parts.tool_services, secrets)
    recording: AbstractAsyncContextManager[None] = nullcontext()
    try:
        if parts.services.changes.needs_record(tool, place.root):
            from cru.core.turn.calls.recorded_changes import record_changes

            recording = await record_changes(parts, tool, request, context)
        # handlers and the records of earlier commands may have taken their time since the first look
        if _real_paths(place, request.paths) != decided.real_paths:
            content = permission.render_refusal(FailureKind.POLICY, PATH_MOVED)
            return ToolResult(content, is_error=True), FailureKind.POLICY
        async with recording:
            result = await tool.run(request.args, context)
    except ToolTimeout as error:
        text = f"{error.partial}\n[{error.message}]" if error.partial else error.message
        return ToolResult(text, is_error=True), FailureKind.TIMEOUT
    except (ToolError, StartError) as error:
        return ToolResult(str(error), is_error=True), FailureKind.FAILED
    except Exception as error:  # noqa: BLE001  the boundary around tools: the model and the user read it
        content = requested_call.report_failure(parts.bus, tool, error)
        return ToolResult(content, is_error=True), FailureKind.FAILED
    return result, FailureKind.FAILED if result.is_error else None


async def _finish(
    parts: Parts,
    decided: DecidedCall,
    result: ToolResult,
    kind: FailureKind | None,
    milliseconds: float,
    halted_by: str,
) -> FinishedCall:
    call, args, answer = decided.request.call, decided.request.args, decided.answer
    which = "" if kind is None else kind.value
    parts.recorder.waits.append((time.time(), "tool", call.name[:100], which, round(milliseconds)))
    text, after, owner = await _announce_result(parts.bus, decided.request, result, which, milliseconds)
    shown, path, spilled, spiller = await _spill(parts, decided.request, text)
    for other, other_owner in ((after, owner), (spilled, spiller)):
        if other.halt and not answer.halt:
            halted_by = other_owner
        answer = add(answer, other)
    guides = guides_of_call(parts.prompt.guides, parts.history, call.name, decided.real_paths) if kind is None else []
    content = "\n".join(filter(None, [shown, *context_texts(parts, answer), *guides]))
    log_writer.tool_result(parts, call, content, result, which, text)
    settled = await parts.bus.dispatch(ToolSettled(call.name, args, text, content, call.id, result.is_error, path))
    if settled.answer.halt and not answer.halt:
        halted_by = settled.by
    return FinishedCall(
        decided, result, text, content, add(answer, settled.answer), decided.injects + injects_of(after),
        halted_by or "a hook", kind,
    )  # fmt: skip


async def _announce_result(
    bus: Bus, request: RequestedCall, result: ToolResult, which: str, milliseconds: float
) -> tuple[str, Answer, str]:
    """Fire `tool:failed` or `tool:completed`: the text as handlers left it, their answer, and who they are."""
    name, args, call_id, content = request.call.name, request.args, request.call.id, result.content
    if result.is_error:
        failed = await bus.dispatch(ToolFailed(name, args, content, which, call_id, milliseconds))
        return failed.payload.error, failed.answer, failed.by
    completed = await bus.dispatch(ToolCompleted(name, args, content, call_id, milliseconds))
    return completed.payload.result, completed.answer, completed.by


async def _spill(parts: Parts, request: RequestedCall, content: str) -> tuple[str, str, Answer, str]:
    """Save an output that is too long, unless a handler cancels that: the output or its stub, the file that holds the rest ("": there is
    none), what counts of the handlers' answers, and who gave it."""
    if not is_too_long(content, settings := parts.tool_services.settings):
        return content, "", PASS, ""
    size, lines = len(content.encode("utf-8", "replace")), content.count("\n") + 1
    outcome = await parts.bus.dispatch(OutputCached(request.call.name, request.args, content, size, lines))
    answer = outcome.answer
    if answer.stops:
        return content, "", Answer(halt=answer.halt, reason=answer.reason), outcome.by
    summary = answer.result if isinstance(answer.result, str) else outcome.payload.summary
    stub, path = save_output(parts.store.folder, request.call.id, request.call.name, content, settings, summary or None)
    return stub, path, PASS, ""


def _real_paths(place: Workplace, paths: tuple[tuple[Access, str], ...]) -> tuple[str, ...]:
    """Return where paths lead now, links followed, for a link may come there meanwhile. One with a NUL leads nowhere and is refused."""
    return tuple([p if "\0" in p else os.path.realpath(place.root / os.path.expanduser(p)) for _, p in paths])


def _take_result(decided: DecidedCall) -> DecidedCall:
    """A handler did it instead: its result is the outcome."""
    result = decided.answer.result
    if not is_whole_result(result):
        return decided.handled(_result_text(result))
    kind = FailureKind.FAILED if result.get("is_error") else None
    return decided.handled(_result_text(result["content"]), kind, result.get("terminate") is True)


def _result_text(result: object) -> str:
    return result if isinstance(result, str) else json.encode(result, enc_hook=str).decode()
