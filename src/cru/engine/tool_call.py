"""THE choke point for tool calls: whoever wants a tool run, it goes this road (docs/turn.md, "One tool call").

resolve name → parse arguments → `tool:before_call` → validate the final input → deny rules, mode → a handler's own result →
allow or ask → `tool:called` → run → `tool:completed` or `tool:failed` → spill → log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from cru.engine import permission, scribe
from cru.engine.parts import Parts
from cru.engine.permission import Asked, Leave
from cru.events.answers import PASS, Answer, add
from cru.events.payloads import OutputCached, ToolBeforeCall, ToolCalled, ToolCompleted, ToolFailed
from cru.events.stream import ToolOutput
from cru.tools.output import spill, wants_spill
from cru.tools.protocol import ArgumentError, Result, Running, Tool, ToolError, ToolTimeout
from cru.values.messages import ToolCall


class Decided(Struct, frozen=True):
    """A call after deciding: either it may run, or `content` is its outcome already. which: as in `tool:failed`."""

    call: ToolCall
    tool: Tool | None
    args: dict[str, Any]
    env: dict[str, str]
    answer: Answer = PASS
    by: str = ""
    runs: bool = False
    content: str = ""
    which: str = ""

    @property
    def halts(self) -> bool:
        return self.answer.halt


class Done(Struct, frozen=True):
    """A finished call: what the model reads, and what handlers added on the way."""

    call: ToolCall
    content: str
    is_error: bool
    answer: Answer = PASS
    ends_turn: bool = False


async def decide(parts: Parts, call: ToolCall, origin: str = "model") -> Decided:
    """Everything up to the decision; raises nothing that a model or a hook may cause."""
    tool = parts.tools.find(call.name)
    args, problem, which = _read(parts, tool, call)
    kind = tool.kind if tool is not None else "tool"
    before = ToolBeforeCall(call.name, args, call.id, kind, {}, not problem, problem, origin)
    outcome = await parts.bus.dispatch(before)
    answer, args, by = outcome.answer, outcome.payload.args, outcome.by
    made = Decided(call, tool, args, outcome.payload.env, answer, by)
    if answer.stops:
        refusal = Leave(False, by, "error" if answer.note == "error" else "hook", answer.reason)
        return _refused(made, refusal)
    if tool is None and answer.result is None:
        return _outcome(made, problem, which)
    if tool is None:
        return _handled(made)
    if args is not before.args:
        problem = _problem(tool, args)
    if problem and answer.result is None:
        return _outcome(made, problem, "invalid")
    return await _leave(
        parts, made, tool, Asked(tool, args, call.id, tool.subject(args) if not problem else "", origin)
    )


async def _leave(parts: Parts, made: Decided, tool: Tool, asked: Asked) -> Decided:
    verdict = permission.judge(parts, asked)
    if verdict.decision == "deny":
        refusal = Leave(False, "policy", "policy", verdict.why)
        await permission.resolved(parts, asked, refusal)
        return _refused(made, refusal)
    if made.answer.result is not None:
        return _handled(made)
    decided = await permission.leave(parts, asked, verdict, made.answer, made.by)
    made = msgspec.structs.replace(made, answer=add(made.answer, decided.answer))
    return msgspec.structs.replace(made, runs=True) if decided.granted else _refused(made, decided)


async def run(parts: Parts, decided: Decided, finishing: asyncio.Lock | None = None) -> Done:
    """Run a decided call (or take its outcome), tell the handlers, log the result. One call finishes at a time."""
    started = time.perf_counter()
    answer = decided.answer
    if decided.runs and decided.tool is not None:
        called = await parts.bus.dispatch(ToolCalled(decided.call.name, decided.args, decided.call.id))
        answer = add(answer, called.answer)
        if called.answer.halt:
            result, which = Result(f"not run: halted by {called.by}", is_error=True), "halted"
        else:
            result, which = await _run(parts, decided.tool, decided)
    else:
        result, which = Result(decided.content, bool(decided.which)), decided.which
    took = round((time.perf_counter() - started) * 1000, 3)
    if finishing is None:
        return await _finish(parts, decided, result, which, took, answer)
    async with finishing:
        return await _finish(parts, decided, result, which, took, answer)


async def _run(parts: Parts, tool: Tool, decided: Decided) -> tuple[Result, str]:
    call_id = decided.call.id
    emit: Callable[[str], None] = lambda text: parts.bus.stream.tell(ToolOutput(call_id, text))  # noqa: E731
    env = {**parts.env, **decided.env} if decided.env else parts.env
    running = Running(call_id, parts.root, parts.store.folder, env, emit, parts.services)
    try:
        result = await tool.run(decided.args, running)
    except ToolTimeout as error:
        text = f"{error.partial}\n[{error.message}]" if error.partial else error.message
        return Result(text, is_error=True), "timeout"
    except ToolError as error:
        return Result(str(error), is_error=True), "failed"
    except Exception as error:  # noqa: BLE001  the boundary around tools: the model and the user read it
        parts.bus.stream.warn(f"tool {tool.spec.name} failed: {type(error).__name__}: {error}", tool.source)
        return Result(f"{type(error).__name__}: {error}", is_error=True), "failed"
    return result, "failed" if result.is_error else ""


async def _finish(parts: Parts, decided: Decided, result: Result, which: str, took: float, answer: Answer) -> Done:
    call, args = decided.call, decided.args
    if result.is_error:
        failed = await parts.bus.dispatch(ToolFailed(call.name, args, result.content, which, call.id, took))
        content, more = failed.payload.error, failed.answer
    else:
        completed = await parts.bus.dispatch(ToolCompleted(call.name, args, result.content, call.id, took))
        content, more = completed.payload.result, completed.answer
    answer = add(answer, more)
    content = await _spilled(parts, call, args, content, result.is_error)
    content = "\n".join([content, *answer.context])
    scribe.result(parts, call, content, result.is_error, **({"which": which} if which else {}))
    return Done(call, content, result.is_error, answer, result.ends_turn)


async def _spilled(parts: Parts, call: ToolCall, args: dict[str, Any], content: str, is_error: bool) -> str:
    if is_error or not wants_spill(content, parts.tool_settings):
        return content
    size, lines = len(content.encode()), content.count("\n") + 1
    outcome = await parts.bus.dispatch(OutputCached(call.name, args, content, size, lines))
    if outcome.answer.stops:
        return content
    summary = outcome.answer.result if isinstance(outcome.answer.result, str) else outcome.payload.summary
    return spill(parts.store.folder, call.id, call.name, content, parts.tool_settings, summary or None)


def _read(parts: Parts, tool: Tool | None, call: ToolCall) -> tuple[dict[str, Any], str, str]:
    if tool is None:
        near = parts.tools.closest(call.name)
        hint = f"; did you mean `{near}`?" if near else ""
        return _loose(call.arguments), f"there is no tool `{call.name}`{hint}", "unknown"
    try:
        return tool.check(call.arguments), "", ""
    except ArgumentError as error:
        return _loose(call.arguments), f"bad arguments for {call.name}: {error}", "invalid"


def _loose(arguments: str) -> dict[str, Any]:
    """Arguments that do not fit, as far as they are a table at all; the raw text otherwise."""
    try:
        value = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": arguments}


def _problem(tool: Tool, args: dict[str, Any]) -> str:
    try:
        tool.check(msgspec.json.encode(args).decode())
    except ArgumentError as error:
        return f"bad arguments for {tool.spec.name} (as changed by a hook): {error}"
    return ""


def _outcome(made: Decided, content: str, which: str) -> Decided:
    return msgspec.structs.replace(made, content=content, which=which)


def _refused(made: Decided, refusal: Leave) -> Decided:
    return msgspec.structs.replace(
        made, content=refusal.told(), which=refusal.which, answer=add(made.answer, refusal.answer)
    )


def _handled(made: Decided) -> Decided:
    result = made.answer.result
    if isinstance(result, dict) and "content" in result:
        return _outcome(made, str(result["content"]), "failed" if result.get("is_error") else "")
    return _outcome(made, result if isinstance(result, str) else msgspec.json.encode(result).decode(), "")
