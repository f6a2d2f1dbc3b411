"""All calls of one reply: decide each in the model's order, then run, then hand the batch over."""

from __future__ import annotations

import asyncio

from cru.engine import limits, log_writer, tool_call
from cru.engine.loop_guard import CallKey
from cru.engine.parts import Parts
from cru.engine.prompts import PendingContext, context_texts
from cru.engine.tool_call import PreparedCall, ToolOutcome
from cru.engine.turn import Turn, TurnStopped
from cru.events.payloads import FailureKind, ToolBatchCompleted
from cru.values.messages import ToolCall

NOT_RUN = "not run: halted by {by}"


async def run(parts: Parts, calls: tuple[ToolCall, ...], turn: Turn, pending: PendingContext) -> list[ToolOutcome]:
    """Run a batch; what came of each call. Raises TurnStopped("halted") after every call has its result."""
    batch: list[PreparedCall] = []
    for call in calls:
        prepared = await tool_call.decide(parts, call)
        batch.append(prepared)
        if prepared.answer.halt:
            await _finish_halted(parts, calls, batch)
            raise TurnStopped("halted", prepared.answer.reason or f"halted by {prepared.decided_by or 'a hook'}")
    outcomes, halt_reason = await _run_all(parts, batch)
    for outcome in outcomes:
        pending.injects.extend(outcome.injects)
    turn.results += len(outcomes)
    completed = await parts.bus.dispatch(ToolBatchCompleted(calls, turn.fuel, turn.fallback))
    turn.take_fuel(completed.payload.fuel)
    turn.fallback = completed.payload.fallback
    answer = completed.answer
    pending.add(context_texts(parts, answer), answer.inject)
    if answer.halt or halt_reason:
        raise TurnStopped("halted", answer.reason or halt_reason)
    last = outcomes[-1].call
    await limits.check_calls(parts, turn, pending, _keys(outcomes), f"{last.name} {last.arguments}")
    return outcomes


async def _finish_halted(parts: Parts, calls: tuple[ToolCall, ...], batch: list[PreparedCall]) -> None:
    """A halt while deciding: no call runs. One that was refused before keeps its refusal, the rest name who halted."""
    by = batch[-1].decided_by or "a hook"
    for number, call in enumerate(calls):
        if number < len(batch) and not batch[number].may_run:
            await tool_call.run(parts, batch[number])
        else:
            _log_not_run(parts, call, by)


def _log_not_run(parts: Parts, call: ToolCall, by: str) -> None:
    log_writer.result(parts, call, NOT_RUN.format(by=by), True, which=FailureKind.HALTED.value)


async def _run_all(parts: Parts, batch: list[PreparedCall]) -> tuple[list[ToolOutcome], str]:
    """In the model's order; neighbours that may run at the same time do. Also why the rest was left out, "" if nobody halted."""
    outcomes: list[ToolOutcome] = []
    finishing = asyncio.Lock()
    for group in _group_parallel(batch):
        by = next((outcome.halted_by for outcome in outcomes if outcome.answer.halt), "")
        if by:
            for prepared in group:
                _log_not_run(parts, prepared.call, by)
        elif len(group) == 1:
            outcomes.append(await tool_call.run(parts, group[0]))
        else:
            outcomes += await _gather([asyncio.create_task(tool_call.run(parts, call, finishing)) for call in group])
    halted = next((outcome for outcome in outcomes if outcome.answer.halt), None)
    return outcomes, "" if halted is None else halted.answer.reason or f"halted by {halted.halted_by}"


def _group_parallel(batch: list[PreparedCall]) -> list[list[PreparedCall]]:
    """Calls that run side by side: a call whose tool must be alone ends a group, so that a read never overtakes a write."""
    groups: list[list[PreparedCall]] = []
    alone = True
    for prepared in batch:
        parallel = not prepared.may_run or (prepared.tool is not None and prepared.tool.parallel)
        if alone or not parallel:
            groups.append([])
        groups[-1].append(prepared)
        alone = not parallel
    return groups


async def _gather(tasks: list[asyncio.Task[ToolOutcome]]) -> list[ToolOutcome]:
    """All results; if one raises or this is cancelled, nothing is left running behind."""
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _keys(outcomes: list[ToolOutcome]) -> list[CallKey]:
    """Of the calls that came to something: they ran, or a handler did them."""
    return [
        (outcome.call.name, outcome.call.arguments, hash(outcome.raw))
        for outcome in outcomes
        if outcome.ran or outcome.failure_kind is None
    ]
