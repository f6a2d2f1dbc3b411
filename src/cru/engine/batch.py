"""All calls of one reply: decide each in the model's order, then run, then hand the batch over."""

from __future__ import annotations

import asyncio

from cru.engine import permission, scribe, tool_call
from cru.engine.guards import NUDGE, LoopGuard
from cru.engine.parts import Parts
from cru.engine.tool_call import Decided, Done
from cru.engine.turn import NextRequest, Stop, Turn
from cru.events.payloads import ToolBatchCompleted
from cru.permissions.asker import Subject
from cru.values.messages import ToolCall

NOT_RUN = "not run: halted by {by}"


async def run(parts: Parts, calls: tuple[ToolCall, ...], turn: Turn, coming: NextRequest, guard: LoopGuard) -> bool:
    """Run a batch; True if a tool ended the turn. Raises Stop("halted") after every call has its result."""
    decided: list[Decided] = []
    halted = ""
    for call in calls:
        made = await tool_call.decide(parts, call)
        decided.append(made)
        if made.halts:
            halted = made.by or "a hook"
            break
    if halted:
        return await _halted(parts, calls, decided, halted, coming)
    done, halted = await _run_all(parts, decided, coming)
    guard.next_round()
    turn.results += len(done)
    outcome = await parts.bus.dispatch(ToolBatchCompleted(calls, turn.fuel, turn.fallback))
    turn.fuel, turn.fallback = outcome.payload.fuel, outcome.payload.fallback
    coming.take(outcome.answer)
    if outcome.answer.halt or halted:
        raise Stop("halted", outcome.answer.reason or f"halted by {halted}")
    await _mind_loops(parts, done, guard, coming)
    return any(d.ends_turn for d in done)


async def _halted(
    parts: Parts, calls: tuple[ToolCall, ...], decided: list[Decided], by: str, coming: NextRequest
) -> bool:
    """A halt while deciding: none runs, the one that was halted keeps its own words, the rest say who halted."""
    last = decided[-1]
    for call in calls:
        if call is last.call:
            await tool_call.run(parts, last)
        else:
            scribe.result(parts, call, NOT_RUN.format(by=by), True, which="halted")
    raise Stop("halted", last.answer.reason or f"halted by {by}")


async def _run_all(parts: Parts, decided: list[Decided], coming: NextRequest) -> tuple[list[Done], str]:
    if len(decided) == 1:
        done = [await tool_call.run(parts, decided[0])]
        coming_halt = _take(done[0], coming)
        return done, coming_halt
    finishing = asyncio.Lock()
    together = [d for d in decided if not d.runs or (d.tool is not None and d.tool.parallel)]
    tasks = [asyncio.create_task(tool_call.run(parts, d, finishing)) for d in together]
    done, halted = [], ""
    try:
        for result in await _all(tasks):
            done.append(result)
            halted = _take(result, coming) or halted
        for one in decided:
            if one in together:
                continue
            if halted:
                scribe.result(parts, one.call, NOT_RUN.format(by=halted), True, which="halted")
                continue
            result = await tool_call.run(parts, one, finishing)
            done.append(result)
            halted = _take(result, coming) or halted
    finally:
        for task in tasks:
            task.cancel()
    return done, halted


async def _all(tasks: list[asyncio.Task[Done]]) -> list[Done]:
    if not tasks:
        return []
    try:
        return list(await asyncio.gather(*tasks))
    except asyncio.CancelledError:
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _take(done: Done, coming: NextRequest) -> str:
    """Injects wait for the next request; context is in the result already. Returns who halted, if anybody did."""
    if done.answer.inject is not None:
        coming.injects.append(done.answer.inject)
    return (done.answer.reason or "a hook") if done.answer.halt else ""


async def _mind_loops(parts: Parts, done: list[Done], guard: LoopGuard, coming: NextRequest) -> None:
    for one in done:
        step, count = guard.seen(one.call.name, one.call.arguments, one.content)
        if step == "nudge":
            coming.context.append(NUDGE.format(count=count))
            parts.bus.stream.warn(f"{one.call.name}: the same call gave the same result {count} times")
        elif step == "ask":
            why = f"the same call gave the same result {count} times; go on?"
            reply = await permission.ask(parts, Subject(one.call.name, "tool", one.call.arguments, why))
            if reply is not None and reply.choice != "no":
                guard.forgive(one.call.name, one.call.arguments, one.content)
        elif step == "stop":
            raise Stop("halted", f"loop: {one.call.name} gave the same result {count} times")
