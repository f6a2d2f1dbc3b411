"""All calls of one reply: decide and run them group by group in the model's order, then hand the batch over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.messages import ToolCall
from cru.core.events.answers import Answer
from cru.core.events.payloads import FailureKind, ToolBatchCompleted
from cru.core.tools.builtin import ToolRegistry as Tools
from cru.core.turn import log_writer
from cru.core.turn.calls import limits, permission, tool_call
from cru.core.turn.calls.permission import DecidedCall
from cru.core.turn.calls.tool_call import FinishedCall
from cru.core.turn.loop_guard import CountedCall
from cru.core.turn.parts import Parts
from cru.core.turn.prompts import PendingContext, context_texts
from cru.core.turn.turn import Turn, stop_for

T = TypeVar("T")
NOT_RUN = "not run: halted by {by}"
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class Halt(Struct, frozen=True):
    """What ends a batch before its last call: who halted, with which answer."""

    by: str
    answer: Answer


def _make_halt(by: str, answer: Answer) -> Halt:
    return Halt(by, answer if answer.reason else replace(answer, reason=f"halted by {by}"))


async def run(parts: Parts, calls: tuple[ToolCall, ...], turn: Turn, pending: PendingContext) -> list[FinishedCall]:
    """Run a batch and return what came of each call. Raises TurnStopped("halted") after every call has its result."""
    outcomes: list[FinishedCall] = []
    halt: Halt | None = None
    for group in [calls] if len(calls) == 1 else _decided_together(parts, calls):
        if halt is None:
            halt = await _play(parts, group, outcomes)
        else:
            for call in group:
                _log_not_run(parts, call, halt.by)
    if halt is not None and not outcomes:
        raise stop_for(halt.answer, "the turn")
    for outcome in outcomes:
        pending.injects.extend(outcome.injects)
    turn.results += len(outcomes)
    completed = await parts.bus.dispatch(ToolBatchCompleted(calls, turn.fuel, turn.fallback))
    turn.take_fuel(completed.payload.fuel)
    turn.fallback = completed.payload.fallback
    answer = completed.answer
    pending.add(context_texts(parts, answer), answer.inject)
    if answer.halt and (answer.reason or halt is None):
        raise stop_for(answer, "the turn")
    if halt is not None:
        raise stop_for(halt.answer, "the turn")
    last = outcomes[-1].call
    await limits.check_calls(parts, turn, pending, _counted(outcomes), f"{last.name} {last.arguments}")
    return outcomes


def _decided_together(parts: Parts, calls: tuple[ToolCall, ...]) -> Sequence[Sequence[ToolCall]]:
    """Return the groups whose calls are all decided before the first of them runs (docs/turn.md, "One tool call").

    A call that must be alone is a group, so that guards know what the calls before it did.
    """
    if parts.bus.registry.looks_ahead("tool:before_call", "permission:requested"):
        return [calls]
    return group_calls(parts.tools, calls, [call.name for call in calls])


def group_calls(tools: Tools, calls: Iterable[T], names: Sequence[str]) -> list[list[T]]:
    """Cut calls of these tools into groups that may be decided and run side by side."""
    return _group(calls, [(tool := tools.find(name)) is not None and tool.parallel for name in names])


async def _play(parts: Parts, calls: Sequence[ToolCall], outcomes: list[FinishedCall]) -> Halt | None:
    """Decide these calls in the model's order, run them, add their outcomes, and return the halt that ended them early, if any."""
    batch: list[DecidedCall] = []
    for call in calls:
        decided = await tool_call.decide(parts, call)
        batch.append(decided)
        if decided.answer.halt:
            await _finish_halted(parts, calls, batch)
            return _make_halt(decided.by or "a hook", decided.answer)
    return await _run_all(parts, batch, outcomes)


async def _finish_halted(parts: Parts, calls: Sequence[ToolCall], batch: list[DecidedCall]) -> None:
    """A halt while deciding: none of these runs. One that was refused before keeps its refusal, the rest name who halted."""
    by = batch[-1].by or "a hook"
    for number, call in enumerate(calls):
        if number < len(batch) and batch[number].state != "granted":
            await tool_call.run(parts, batch[number])
        else:
            _log_not_run(parts, call, by)


def _log_not_run(parts: Parts, call: ToolCall, by: str) -> None:
    log_writer.result(parts, call, NOT_RUN.format(by=by), True, which=FailureKind.HALTED.value)


async def _run_all(parts: Parts, batch: list[DecidedCall], outcomes: list[FinishedCall]) -> Halt | None:
    """Run them in the model's order; neighbours that may run at the same time do."""
    finishing = asyncio.Lock()
    halt: Halt | None = None
    for number, group in enumerate([batch] if len(batch) == 1 else _run_together(batch)):
        if halt is not None:
            for decided in group:
                _log_not_run(parts, decided.request.call, halt.by)
            continue
        if number:
            group = [_judge_again(parts, decided) for decided in group]
        if len(group) == 1:
            new = [await tool_call.run(parts, group[0])]
        else:
            new = await _gather([asyncio.create_task(tool_call.run(parts, call, finishing)) for call in group])
        outcomes += new
        for outcome in new:
            if outcome.answer.halt and halt is None:
                halt = _make_halt(outcome.halted_by, outcome.answer)
    return halt


def _judge_again(parts: Parts, decided: DecidedCall) -> DecidedCall:
    """Refuse a call that was decided before others ran, if rules or the mode are stricter about it now: one of these may have made its file
    one that git runs, or a repository of the folder that it works in."""
    if decided.state != "granted":
        return decided
    verdict = permission.judge(parts, decided.request)
    if _STRICTNESS[verdict.decision] <= _STRICTNESS[decided.judged]:
        return decided
    reason = f"a call before it changed what it does: {verdict.reason}"
    return decided.refused(FailureKind.POLICY, "policy", reason)


def _run_together(batch: list[DecidedCall]) -> list[list[DecidedCall]]:
    return _group(
        batch,
        [call.state != "granted" or (call.request.tool is not None and call.request.tool.parallel) for call in batch],
    )


def _group(calls: Iterable[T], can_share: list[bool]) -> list[list[T]]:
    """Cut calls into groups that run side by side: one that must be alone ends a group, so that a read never overtakes a write."""
    groups: list[list[T]] = []
    was_alone = True
    for call, shares in zip(calls, can_share, strict=True):
        if was_alone or not shares:
            groups.append([])
        groups[-1].append(call)
        was_alone = not shares
    return groups


async def _gather(tasks: list[asyncio.Task[FinishedCall]]) -> list[FinishedCall]:
    """All results; if one raises or this is cancelled, nothing is left running behind."""
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _counted(outcomes: list[FinishedCall]) -> list[CountedCall]:
    """Return the calls that came to something: they ran, or a handler did them."""
    return [
        CountedCall(asked.call.name, asked.call.arguments, outcome.result.content, asked.kind, outcome.result.is_error)
        for outcome in outcomes
        for asked in (outcome.decided.request,)
        if outcome.decided.state == "granted" or outcome.failure_kind is None
    ]
