"""THE choke point for tool calls: whoever wants a tool run, it goes this road (docs/turn.md, "One tool call").

resolve name → parse arguments → `tool:before_call` → validate the final input → deny rules, mode → a handler's own result →
allow or ask → `tool:called` → run → `tool:completed` or `tool:failed` → spill → log → `tool:settled`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.engine import log_writer, permission
from cru.engine.parts import Parts
from cru.engine.pending import context_texts
from cru.engine.permission import REFUSALS, PermissionDecision, PermissionQuestion
from cru.events.answers import PASS, Answer, Inject, add
from cru.events.payloads import OutputCached, ToolBeforeCall, ToolCalled, ToolCompleted, ToolFailed, ToolSettled
from cru.events.scope import check
from cru.events.stream import ToolOutput
from cru.tools.output import is_too_long, save_output
from cru.tools.protocol import Access, ArgumentError, Tool, ToolContext, ToolError, ToolResult, ToolTimeout
from cru.values.errors import CruError
from cru.values.messages import ToolCall

NO_TOOLS = "no tool may be called in this run (no_tool_calls)"
MOVED = "the path leads elsewhere now than when it was allowed"


class PreparedCall(Struct, frozen=True):
    """A call after deciding: either it may run, or `content` is its outcome already. which: as in `tool:failed`. `answer` is the
    fold of all that handlers said, `injects` each dispatch's inject, `by` who decided, `places` where its paths led then."""

    call: ToolCall
    tool: Tool | None
    args: dict[str, Any]
    env: dict[str, str]
    answer: Answer = PASS
    injects: tuple[Inject, ...] = ()
    by: str = ""
    runs: bool = False
    content: str = ""
    which: str = ""
    paths: tuple[tuple[Access, str], ...] = ()
    places: tuple[str, ...] = ()


class ToolOutcome(Struct, frozen=True):
    """A finished call: what the model reads, what the tool gave (`raw`) and what handlers made of that (`result`), what it says in the
    agent's name if it ended the turn (`said`), and what handlers added on the way. which: as in `tool:failed`; `ran`: it was let."""

    call: ToolCall
    content: str
    is_error: bool
    answer: Answer = PASS
    injects: tuple[Inject, ...] = ()
    ends_turn: bool = False
    raw: str = ""
    said: str = ""
    halted_by: str = ""
    result: str = ""
    which: str = ""
    ran: bool = False


async def decide(parts: Parts, call: ToolCall, origin: str = "model") -> PreparedCall:
    """Everything up to the decision; raises nothing that a model, a hook or a tool may cause."""
    check()
    off = origin == "model" and parts.settings.no_tool_calls
    tool = None if off else parts.tools.find(call.name)
    args, problem, which = (_loose(call.arguments), NO_TOOLS, "policy") if off else _read(parts, tool, call)
    kind = tool.kind if tool is not None else "tool"
    before = ToolBeforeCall(call.name, args, call.id, kind, {}, not problem, problem, origin)
    outcome = await parts.bus.dispatch(before)
    answer, args, by = outcome.answer, outcome.payload.args, outcome.by
    if tool is not None and args is not before.args:
        args, problem, which = _reread(parts, tool, args)
    made = PreparedCall(call, tool, args, outcome.payload.env, answer, _inject(answer), by)
    asked = PermissionQuestion(call.name, kind, args, call.id, origin=origin)
    if answer.stops:
        return _refused(made, await permission.resolved(parts, asked, permission.refusal(by, answer, outcome.failed)))
    if problem and answer.result is None:
        return _outcome(made, problem, which)
    if tool is not None and not problem:
        try:
            asked = replace(asked, detail=tool.subject(args), paths=tuple(tool.paths(args)), tool=tool)
        except Exception as error:  # noqa: BLE001  the boundary around tools: reported
            return _outcome(made, _failure(parts, tool, error), "failed")
    return await _leave(parts, made, asked)


async def _leave(parts: Parts, made: PreparedCall, asked: PermissionQuestion) -> PreparedCall:
    verdict = permission.judge(parts, asked)
    if verdict.decision == "deny":
        refusal = PermissionDecision(False, "policy", "policy", verdict.why)
        return _refused(made, await permission.resolved(parts, asked, refusal))
    if made.answer.result is not None:
        return _handled(made)
    decided = await permission.decide(parts, asked, verdict, made.answer, made.by)
    if not decided.granted:
        return _refused(made, decided)
    return replace(_with(made, decided), runs=True, paths=asked.paths, places=_places(parts, asked.paths))


async def run(parts: Parts, decided: PreparedCall, finishing: asyncio.Lock | None = None) -> ToolOutcome:
    """Run a decided call (or take its outcome), tell the handlers, log the result. One call finishes at a time."""
    check()
    started = time.perf_counter()
    halted_by = decided.by
    tool = decided.tool
    if decided.runs and tool is not None and _places(parts, decided.paths) != decided.places:
        decided = replace(decided, runs=False, which="policy", content=REFUSALS["policy"].format(reason=MOVED))
    if decided.runs and tool is not None:
        called = await parts.bus.dispatch(ToolCalled(decided.call.name, decided.args, decided.call.id))
        decided = replace(
            decided, answer=add(decided.answer, called.answer), injects=decided.injects + _inject(called.answer)
        )
        if called.answer.halt:
            halted_by = called.by
            result, which = ToolResult(f"not run: halted by {called.by}", is_error=True), "halted"
        else:
            result, which = await _run(parts, tool, decided)
    else:
        result, which = ToolResult(decided.content, bool(decided.which)), decided.which
    took = round((time.perf_counter() - started) * 1000, 3)
    async with finishing or asyncio.Lock():
        return await _finish(parts, decided, result, which, took, halted_by)


async def _run(parts: Parts, tool: Tool, decided: PreparedCall) -> tuple[ToolResult, str]:
    call_id = decided.call.id
    emit: Callable[[str], None] = lambda text: parts.bus.stream.tell(ToolOutput(call_id, text))  # noqa: E731
    env = {**parts.env, **decided.env} if decided.env else parts.env
    running = ToolContext(call_id, parts.root, parts.store.folder, env, emit, parts.tool_services)
    try:
        result = await tool.run(decided.args, running)
    except ToolTimeout as error:
        text = f"{error.partial}\n[{error.message}]" if error.partial else error.message
        return ToolResult(text, is_error=True), "timeout"
    except ToolError as error:
        return ToolResult(str(error), is_error=True), "failed"
    except Exception as error:  # noqa: BLE001  the boundary around tools: the model and the user read it
        return ToolResult(_failure(parts, tool, error), is_error=True), "failed"
    return result, "failed" if result.is_error else ""


async def _finish(
    parts: Parts, decided: PreparedCall, result: ToolResult, which: str, took: float, halted_by: str
) -> ToolOutcome:
    call, args = decided.call, decided.args
    if result.is_error:
        failed = await parts.bus.dispatch(ToolFailed(call.name, args, result.content, which, call.id, took))
        said, more, by = failed.payload.error, failed.answer, failed.by
    else:
        completed = await parts.bus.dispatch(ToolCompleted(call.name, args, result.content, call.id, took))
        said, more, by = completed.payload.result, completed.answer, completed.by
    content, cached, spilled, spilled_by = await _spilled(parts, call, args, said)
    answer = decided.answer
    for other, owner in ((more, by), (spilled, spilled_by)):
        if other.halt and not answer.halt:
            halted_by = owner
        answer = add(answer, other)
    content = "\n".join(filter(None, [content, *context_texts(parts, answer)]))
    log_writer.result(parts, call, content, result.is_error, **({"which": which} if which else {}))
    settled = await parts.bus.dispatch(ToolSettled(call.name, args, said, content, call.id, result.is_error, cached))
    if settled.answer.halt and not answer.halt:
        halted_by = settled.by
    answer = add(answer, settled.answer)
    ends = result.ends_turn and not result.is_error
    injects = decided.injects + _inject(more)
    return ToolOutcome(
        call,
        content,
        result.is_error,
        answer,
        injects,
        ends,
        result.content,
        said if ends else "",
        halted_by or "a hook",
        said,
        which,
        decided.runs,
    )


async def _spilled(parts: Parts, call: ToolCall, args: dict[str, Any], content: str) -> tuple[str, str, Answer, str]:
    """The content or its stub, the file that holds the rest, what the handlers said, and who they were."""
    if not is_too_long(content, parts.tool_settings):
        return content, "", PASS, ""
    size, lines = len(content.encode("utf-8", "replace")), content.count("\n") + 1
    outcome = await parts.bus.dispatch(OutputCached(call.name, args, content, size, lines))
    answer = outcome.answer
    if answer.stops:
        return content, "", Answer(halt=answer.halt, reason=answer.reason), outcome.by
    summary = answer.result if isinstance(answer.result, str) else outcome.payload.summary
    stub, path = save_output(parts.store.folder, call.id, call.name, content, parts.tool_settings, summary or None)
    return stub, path, PASS, ""


def _places(parts: Parts, paths: tuple[tuple[Access, str], ...]) -> tuple[str, ...]:
    """Where paths lead now, links followed: a call of the same reply may have put a link there since it was decided."""
    return tuple(os.path.realpath(parts.root / os.path.expanduser(path)) for _, path in paths)


def _read(parts: Parts, tool: Tool | None, call: ToolCall) -> tuple[dict[str, Any], str, str]:
    """The arguments, what is wrong with the call, and of which kind that is."""
    if tool is None:
        near = parts.tools.closest(call.name)
        hint = f"; did you mean `{near}`?" if near else ""
        return _loose(call.arguments), f"there is no tool `{call.name}`{hint}", "unknown"
    try:
        return tool.check(call.arguments), "", ""
    except ArgumentError as error:
        return _loose(call.arguments), f"bad arguments for {call.name}: {error}", "invalid"
    except Exception as error:  # noqa: BLE001  the boundary around tools: reported
        return _loose(call.arguments), _failure(parts, tool, error), "failed"


def _reread(parts: Parts, tool: Tool, args: dict[str, Any]) -> tuple[dict[str, Any], str, str]:
    """The same for arguments that a hook changed."""
    by_hook = f"bad arguments for {tool.spec.name} (as changed by a hook)"
    try:
        return tool.check(msgspec.json.encode(args).decode()), "", ""
    except ArgumentError as error:
        return args, f"{by_hook}: {error}", "invalid"
    except Exception as error:  # noqa: BLE001  not JSON, or a defect of the tool: reported
        return args, f"{by_hook}: {_failure(parts, tool, error)}", "invalid"


def _failure(parts: Parts, tool: Tool, error: Exception) -> str:
    text = str(error) if isinstance(error, CruError) else f"{type(error).__name__}: {error}"
    parts.bus.stream.warn(f"tool {tool.spec.name} failed: {text}", tool.source)
    return text


def _loose(arguments: str) -> dict[str, Any]:
    """Arguments that do not fit, as far as they are a table at all; the raw text otherwise."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": arguments}


def _inject(answer: Answer) -> tuple[Inject, ...]:
    return () if answer.inject is None else (answer.inject,)


def _outcome(made: PreparedCall, content: str, which: str) -> PreparedCall:
    return replace(made, content=content, which=which)


def _with(made: PreparedCall, leave: PermissionDecision) -> PreparedCall:
    """The call with what was said while leave was asked for."""
    if leave.answer is PASS or leave.answer is made.answer:
        return made
    return replace(made, answer=add(made.answer, leave.answer), injects=made.injects + _inject(leave.answer))


def _refused(made: PreparedCall, refusal: PermissionDecision) -> PreparedCall:
    return replace(_with(made, refusal), content=refusal.told(), which=refusal.which, by=refusal.by)


def _handled(made: PreparedCall) -> PreparedCall:
    result = made.answer.result
    if isinstance(result, dict) and "content" in result:
        return _outcome(made, str(result["content"]), "failed" if result.get("is_error") else "")
    return _outcome(made, result if isinstance(result, str) else msgspec.json.encode(result, enc_hook=str).decode(), "")
