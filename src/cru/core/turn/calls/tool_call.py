"""THE choke point for tool calls: whoever wants a tool run, it goes this road (docs/turn.md, "One tool call").

resolve name → parse arguments → `tool:before_call` → validate the final input → deny rules, mode → a handler's own result →
allow or ask → `tool:called` → run → `tool:completed` or `tool:failed` → spill → log → `tool:settled`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct, json
from msgspec.structs import replace

from cru.core.base.values.cancellation import check
from cru.core.base.values.messages import ToolCall
from cru.core.events.answers import PASS, Answer, Inject, add, is_whole_result
from cru.core.events.bus import Bus, Outcome
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
from cru.core.tools.protocol import Access, SecretVariables, Tool, ToolContext, ToolError, ToolResult, ToolTimeout
from cru.core.turn import log_writer
from cru.core.turn.calls import permission
from cru.core.turn.calls.permission import CallRewrite, PermissionDecision, PermissionQuestion, render_refusal
from cru.core.turn.parts import Parts, Workplace
from cru.core.turn.prompts import context_texts
from cru.core.turn.system_prompt import guides_of_call

if TYPE_CHECKING:
    from cru.core.turn.calls.call_arguments import CheckedArguments

NO_TOOLS = "no tool may be called in this run (no_tool_calls)"
PATH_MOVED = "the path leads elsewhere now than when it was allowed"


class PreparedCall(Struct, frozen=True):
    """A call after deciding: either it may run, or `content` is its outcome already.

    tool: None: there is no tool of that name
    args: as handlers left them
    env: what handlers add to the environment
    answer: the fold of all answers so far
    injects: the injects of each dispatch
    decided_by: who decided
    may_run: whether it may run
    content: what the model reads if it may not
    failure_kind: why it came to nothing; None: it may run, or a handler did it instead
    paths: what it touches, as given by the model
    judged: if it may run, what rules and the mode have judged, and what they said
    real_paths: where these led when it was decided
    origin: who calls: model, user, script, hook or command
    """

    call: ToolCall
    tool: Tool | None
    args: dict[str, object]
    env: dict[str, str]
    answer: Answer = PASS
    injects: tuple[Inject, ...] = ()
    decided_by: str = ""
    may_run: bool = False
    content: str = ""
    failure_kind: FailureKind | None = None
    terminates: bool = False
    paths: tuple[tuple[Access, str], ...] = ()
    real_paths: tuple[str, ...] = ()
    judged: tuple[PermissionQuestion, str] | None = None
    origin: str = "model"


class ToolOutcome(Struct, frozen=True):
    """A finished call.

    content: what the model reads
    answer: the fold of all answers on the way
    injects: the injects of each dispatch
    ends_turn: the turn is over without another request
    terminates: so it is if all calls of the reply say so
    raw: what the tool gave
    brief: that without what a person has seen already, on standard error; "" = the same
    result: what handlers made of that
    halted_by: who halted, if `answer` halts
    failure_kind: why it came to nothing; None: it did not
    ran: whether it was allowed to run
    """

    call: ToolCall
    content: str
    is_error: bool
    answer: Answer = PASS
    injects: tuple[Inject, ...] = ()
    ends_turn: bool = False
    terminates: bool = False
    raw: str = ""
    brief: str = ""
    result: str = ""
    halted_by: str = ""
    failure_kind: FailureKind | None = None
    ran: bool = False


async def decide(
    parts: Parts, call: ToolCall, origin: str = "model", file: dict[str, str] | None = None
) -> PreparedCall:
    """Everything up to the decision; raises nothing that a model, a hook or a tool may cause."""
    from cru.core.turn.calls import call_arguments

    check()
    is_off = origin == "model" and parts.settings.no_tool_calls
    tool = None if is_off else parts.tools.find(call.name) or await parts.await_tool(call.name)
    if is_off:
        loose = call_arguments.decode_loosely(call.arguments)
        checked = call_arguments.CheckedArguments(loose, NO_TOOLS, FailureKind.POLICY)
    else:
        checked = call_arguments.check_arguments(parts, tool, call)
    kind = tool.kind if tool is not None else "tool"
    is_valid = not checked.problem
    before = ToolBeforeCall(call.name, checked.args, call.id, kind, {}, is_valid, checked.problem, origin, file or {})
    outcome = await parts.bus.dispatch(before)
    if tool is not None and outcome.payload.args is not before.args:
        checked = call_arguments.check_again(parts, tool, outcome.payload.args)
        if before.error and not checked.problem and not outcome.answer.stops:
            outcome, checked = await call_arguments.announce_mended(parts, tool, outcome, checked)
    answer, changed_by = outcome.answer, outcome.changed_by("args")
    args = checked.args if tool is not None else outcome.payload.args
    prepared = PreparedCall(
        call, tool, args, outcome.payload.env, answer, _injects_of(answer), outcome.by, origin=origin
    )
    question = PermissionQuestion(
        call.name, kind, args, call.id, origin=origin, prompt_file=before.prompt_file, changed_by=changed_by,
        before=call_arguments.describe_call(parts, tool, before.args) if changed_by and before.valid else "",
    )  # fmt: skip
    return await _decide_announced(parts, prepared, question, outcome, checked)


async def _decide_announced(
    parts: Parts,
    prepared: PreparedCall,
    question: PermissionQuestion,
    outcome: Outcome[ToolBeforeCall],
    checked: CheckedArguments,
) -> PreparedCall:
    """A call that the handlers of `tool:before_call` have heard of."""
    from cru.core.turn.calls.call_arguments import report_failure

    answer, tool = outcome.answer, prepared.tool
    if answer.stops:
        refusal = permission.refuse(outcome.by, answer, outcome.failed)
        return _refuse(prepared, await permission.announce(parts.bus, question, refusal))
    if checked.problem and answer.result is None:
        return replace(prepared, content=checked.problem, failure_kind=checked.failure_kind)
    if tool is not None and not checked.problem:
        try:
            is_choice_of_plugin = question.origin != "model" and getattr(tool, "chooses_model", False)
            paths = () if is_choice_of_plugin else tuple(tool.paths(question.args))
            question = replace(question, detail=tool.subject(question.args), paths=paths, tool=tool)
        except Exception as error:  # noqa: BLE001  the boundary around tools: reported
            return replace(prepared, content=report_failure(parts.bus, tool, error), failure_kind=FailureKind.FAILED)
    return await _get_permission(parts, prepared, question)


async def _get_permission(parts: Parts, prepared: PreparedCall, question: PermissionQuestion) -> PreparedCall:
    real = _real_paths(parts.place, question.paths)  # as they are judged: a question may take its time
    verdict = permission.judge(parts, question)
    if verdict.decision == "deny":
        refusal = PermissionDecision("policy", FailureKind.POLICY, verdict.reason)
        return _refuse(prepared, await permission.announce(parts.bus, question, refusal))
    if prepared.answer.result is not None:
        return _take_result(prepared)
    decision = await permission.decide(parts, question, verdict, prepared.answer, prepared.decided_by)
    if decision.rewrite is not None:
        return await _decide_rewritten(
            parts, _add_answer(prepared, decision), question, decision.rewrite, decision.answer
        )
    if not decision.granted:
        return _refuse(prepared, decision)
    paths, env = question.paths, prepared.env
    env = env and permission.without_outside(parts, question, env, prepared.decided_by)
    judged = (question, verdict.decision)
    return replace(_add_answer(prepared, decision), may_run=True, paths=paths, real_paths=real, judged=judged, env=env)


async def _decide_rewritten(
    parts: Parts, prepared: PreparedCall, question: PermissionQuestion, rewrite: CallRewrite, asked: Answer
) -> PreparedCall:
    """A call that handlers of its question have put in the place of another one: it goes the whole road from the start, once
    (docs/decisions/0035). What was allowed or asked of the other one says nothing about it, but the leave that came with it."""
    from cru.core.turn.calls.call_arguments import CheckedArguments, check_again

    tool = prepared.tool
    earlier = replace(prepared.answer, decision="none", reason="", result=None, updates=())
    prepared = replace(prepared, answer=earlier)
    checked = CheckedArguments(rewrite.args) if tool is None else check_again(parts, tool, rewrite.args)
    if checked.problem:
        return replace(prepared, args=rewrite.args, content=checked.problem, failure_kind=checked.failure_kind)
    call = prepared.call
    kind, origin, file = question.kind, question.origin, question.prompt_file
    before = ToolBeforeCall(call.name, checked.args, call.id, kind, prepared.env, True, "", origin, file)
    outcome = await parts.bus.dispatch(before)
    if tool is not None and outcome.payload.args is not before.args:
        checked = check_again(parts, tool, outcome.payload.args)
        if checked.args != before.args:
            rewrite = replace(rewrite, leave_of=())
    prepared = replace(
        prepared, args=checked.args, env=outcome.payload.env, answer=add(prepared.answer, outcome.answer),
        injects=prepared.injects + _injects_of(outcome.answer), decided_by=outcome.by,
    )  # fmt: skip
    owners = [*filter(None, (question.changed_by, ", ".join(rewrite.by), outcome.changed_by("args")))]
    question = PermissionQuestion(
        call.name, question.kind, checked.args, call.id, origin=question.origin, prompt_file=question.prompt_file,
        before=question.before or question.detail, changed_by=", ".join(dict.fromkeys(owners)), rewrite=rewrite, asked=asked,
    )  # fmt: skip
    return await _decide_announced(parts, prepared, question, outcome, checked)


async def run(parts: Parts, prepared: PreparedCall, finishing: asyncio.Lock | None = None) -> ToolOutcome:
    """Run a decided call (or take its outcome), tell the handlers, log the result. One call finishes at a time."""
    check()
    started = time.perf_counter()
    halted_by, tool = prepared.decided_by, prepared.tool
    if prepared.may_run and _real_paths(parts.place, prepared.paths) != prepared.real_paths:
        content = render_refusal(FailureKind.POLICY, PATH_MOVED)
        prepared = replace(prepared, may_run=False, failure_kind=FailureKind.POLICY, content=content)
    kind = prepared.failure_kind
    if not prepared.may_run or tool is None:
        result = ToolResult(prepared.content, is_error=kind is not None)
    else:
        called = await parts.bus.dispatch(ToolCalled(prepared.call.name, prepared.args, prepared.call.id))
        injects = prepared.injects + _injects_of(called.answer)
        prepared = replace(prepared, answer=add(prepared.answer, called.answer), injects=injects)
        if called.answer.halt:
            halted_by, kind = called.by, FailureKind.HALTED
            result = ToolResult(f"not run: halted by {halted_by}", is_error=True)
        else:
            result, kind = await _run_tool(parts, tool, prepared)
    milliseconds = round((time.perf_counter() - started) * 1000, 3)
    async with finishing or nullcontext():
        shown = parts.place.secrets.hide(result) if parts.place.secrets.hidden else result
        return await _finish(parts, prepared, shown, kind, milliseconds, halted_by)


async def _run_tool(parts: Parts, tool: Tool, prepared: PreparedCall) -> tuple[ToolResult, FailureKind | None]:
    from cru.core.turn.calls.call_arguments import report_failure

    emit: Callable[[str], None] = lambda text: parts.bus.stream.tell(ToolOutput(prepared.call.id, text))  # noqa: E731
    place, args = parts.place, prepared.args
    secrets = SecretVariables() if prepared.origin == "user" else place.secrets
    env = {**(secrets.without(place.env) if secrets.names else place.env), **prepared.env}
    context = ToolContext(prepared.call.id, place.root, parts.store.folder, env, emit, parts.tool_services, secrets)
    try:
        if is_recorded := parts.services.changes.needs_record(tool, place.root):
            from cru.core.turn.calls.recorded_changes import run_recorded, settle_commands

            await settle_commands(parts.services, tool)
        # handlers and the records of earlier commands may have taken their time since the first look
        if _real_paths(place, prepared.paths) != prepared.real_paths:
            return ToolResult(render_refusal(FailureKind.POLICY, PATH_MOVED), is_error=True), FailureKind.POLICY
        run = run_recorded(parts, tool, args, context, prepared.paths) if is_recorded else tool.run(args, context)
        result = await run
    except ToolTimeout as error:
        text = f"{error.partial}\n[{error.message}]" if error.partial else error.message
        return ToolResult(text, is_error=True), FailureKind.TIMEOUT
    except ToolError as error:
        return ToolResult(str(error), is_error=True), FailureKind.FAILED
    except Exception as error:  # noqa: BLE001  the boundary around tools: the model and the user read it
        return ToolResult(report_failure(parts.bus, tool, error), is_error=True), FailureKind.FAILED
    return result, FailureKind.FAILED if result.is_error else None


async def _finish(
    parts: Parts,
    prepared: PreparedCall,
    result: ToolResult,
    kind: FailureKind | None,
    milliseconds: float,
    halted_by: str,
) -> ToolOutcome:
    call, args, answer = prepared.call, prepared.args, prepared.answer
    which = "" if kind is None else kind.value
    parts.recorder.waits.append((time.time(), "tool", call.name[:100], which, round(milliseconds)))
    text, after, owner = await _announce_result(parts.bus, prepared, result, which, milliseconds)
    spilled = await _spill(parts, call, args, text)
    for other, other_owner in ((after, owner), (spilled.answer, spilled.owner)):
        if other.halt and not answer.halt:
            halted_by = other_owner
        answer = add(answer, other)
    guides = guides_of_call(parts.prompt.guides, parts.history, call.name, prepared.real_paths) if kind is None else []
    content = "\n".join(filter(None, [spilled.content, *context_texts(parts, answer), *guides]))
    log_writer.tool_result(parts, call, content, result, which, text)
    settled = await parts.bus.dispatch(
        ToolSettled(call.name, args, text, content, call.id, result.is_error, spilled.path)
    )
    if settled.answer.halt and not answer.halt:
        halted_by = settled.by
    return ToolOutcome(
        call,
        content,
        result.is_error,
        answer=add(answer, settled.answer),
        injects=prepared.injects + _injects_of(after),
        ends_turn=result.ends_turn and not result.is_error,
        terminates=prepared.terminates,
        raw=result.content,
        brief=result.brief,
        result=text,
        halted_by=halted_by or "a hook",
        failure_kind=kind,
        ran=prepared.may_run,
    )


async def _announce_result(
    bus: Bus, prepared: PreparedCall, result: ToolResult, which: str, milliseconds: float
) -> tuple[str, Answer, str]:
    """Fire `tool:failed` or `tool:completed`: the text as handlers left it, their answer, and who they are."""
    call, args, content = prepared.call, prepared.args, result.content
    if result.is_error:
        failed = await bus.dispatch(ToolFailed(call.name, args, content, which, call.id, milliseconds))
        return failed.payload.error, failed.answer, failed.by
    completed = await bus.dispatch(ToolCompleted(call.name, args, content, call.id, milliseconds))
    return completed.payload.result, completed.answer, completed.by


class Spilled(Struct, frozen=True):
    """An output that may have been too long.

    content: the output or its stub
    path: the file that holds the rest, "" if there is none
    answer: what counts of the handlers' answers
    owner: who gave it
    """

    content: str
    path: str = ""
    answer: Answer = PASS
    owner: str = ""


async def _spill(parts: Parts, call: ToolCall, args: dict[str, object], content: str) -> Spilled:
    """Save an output that is too long, unless a handler cancels that."""
    if not is_too_long(content, settings := parts.tool_services.settings):
        return Spilled(content)
    size, lines = len(content.encode("utf-8", "replace")), content.count("\n") + 1
    outcome = await parts.bus.dispatch(OutputCached(call.name, args, content, size, lines))
    answer = outcome.answer
    if answer.stops:
        return Spilled(content, "", Answer(halt=answer.halt, reason=answer.reason), outcome.by)
    summary = answer.result if isinstance(answer.result, str) else outcome.payload.summary
    stub, path = save_output(parts.store.folder, call.id, call.name, content, settings, summary or None)
    return Spilled(stub, path)


def _real_paths(place: Workplace, paths: tuple[tuple[Access, str], ...]) -> tuple[str, ...]:
    """Return where paths lead now, links followed, for a link may come there meanwhile. One with a NUL leads nowhere and is refused."""
    return tuple([p if "\0" in p else os.path.realpath(place.root / os.path.expanduser(p)) for _, p in paths])


def _injects_of(answer: Answer) -> tuple[Inject, ...]:
    return () if answer.inject is None else (answer.inject,)


def _add_answer(prepared: PreparedCall, decision: PermissionDecision) -> PreparedCall:
    """The call with what handlers answered while permission was asked for."""
    if decision.answer is PASS or decision.answer is prepared.answer:
        return prepared
    injects = prepared.injects + _injects_of(decision.answer)
    return replace(prepared, answer=add(prepared.answer, decision.answer), injects=injects)


def _refuse(prepared: PreparedCall, refusal: PermissionDecision) -> PreparedCall:
    prepared, content = _add_answer(prepared, refusal), refusal.refusal_text()
    return replace(prepared, content=content, failure_kind=refusal.refusal, decided_by=refusal.by)


def _take_result(prepared: PreparedCall) -> PreparedCall:
    """A handler did it instead: its result is the outcome."""
    result = prepared.answer.result
    if not is_whole_result(result):
        return replace(prepared, content=_result_text(result))
    kind = FailureKind.FAILED if result.get("is_error") else None
    text, terminates = _result_text(result["content"]), result.get("terminate") is True
    return replace(prepared, content=text, failure_kind=kind, terminates=terminates)


def _result_text(result: object) -> str:
    return result if isinstance(result, str) else json.encode(result, enc_hook=str).decode()
