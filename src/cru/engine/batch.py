"""All calls of one reply: decide each in the model's order, then run, then hand the batch over."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Literal

from cru.engine import log_writer, permission, tool_call
from cru.engine.parts import Parts
from cru.engine.prompts import PendingContext, context_texts
from cru.engine.tool_call import PreparedCall, ToolOutcome
from cru.engine.turn import Turn, TurnStopped
from cru.events.payloads import FailureKind, ToolBatchCompleted
from cru.permissions.gate import PermissionSubject
from cru.values.messages import ToolCall

NOT_RUN = "not run: halted by {by}"
NUDGE = (
    "This same call has now given the same result {count} times. "
    "Do not repeat it: change the approach, or say what blocks you."
)
LOOP_WINDOW = 10
"""Rounds in which repeated calls count."""
LOOP_MOST = 5
"""How often the same call may give the same result in them."""

CallKey = tuple[str, str, int]
"""Name, arguments, hash of the result."""
LoopStep = Literal["", "nudge", "ask", "stop"]
LOOP_STEPS: tuple[LoopStep, ...] = ("nudge", "ask", "stop")


class LoopGuard:
    """Sees every call with its result. The same more than LOOP_MOST times in LOOP_WINDOW rounds: nudge, then ask, then stop."""

    def __init__(self) -> None:
        self._rounds: deque[Counter[CallKey]] = deque(maxlen=LOOP_WINDOW)
        self._warned: Counter[CallKey] = Counter()
        self._stepped: set[CallKey] = set()

    def next_round(self) -> None:
        self._rounds.append(Counter())
        self._stepped.clear()

    def take(self, name: str, arguments: str, result: str) -> tuple[LoopStep, int]:
        """Count one finished call: what to do now, and how often it was seen."""
        key = (name, arguments, hash(result))
        if not self._rounds:
            self.next_round()
        self._rounds[-1][key] += 1
        count = sum(calls[key] for calls in self._rounds)
        if count <= LOOP_MOST or key in self._stepped:  # one step a round: the model must see each
            return "", count
        self._stepped.add(key)
        self._warned[key] += 1
        return LOOP_STEPS[min(self._warned[key], len(LOOP_STEPS)) - 1], count

    def forgive(self, name: str, arguments: str, result: str) -> None:
        """A person said: go on."""
        self._warned.pop((name, arguments, hash(result)), None)
        self._rounds.clear()


async def run(
    parts: Parts, calls: tuple[ToolCall, ...], turn: Turn, pending: PendingContext, guard: LoopGuard
) -> list[ToolOutcome]:
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
    guard.next_round()
    turn.results += len(outcomes)
    completed = await parts.bus.dispatch(ToolBatchCompleted(calls, turn.fuel, turn.fallback))
    turn.fuel, turn.fallback = completed.payload.fuel, completed.payload.fallback
    answer = completed.answer
    pending.add(context_texts(parts, answer), answer.inject)
    if answer.halt or halt_reason:
        raise TurnStopped("halted", answer.reason or halt_reason)
    await _check_loops(parts, outcomes, guard, pending)
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


async def _check_loops(parts: Parts, outcomes: list[ToolOutcome], guard: LoopGuard, pending: PendingContext) -> None:
    """Raises TurnStopped("halted") if the same call is made over and over."""
    for outcome in outcomes:
        name, arguments = outcome.call.name, outcome.call.arguments
        step, count = guard.take(name, arguments, outcome.raw)
        if not step:
            continue
        why = f"{name}: the same call gave the same result {count} times"
        if step == "nudge":
            pending.context.append(NUDGE.format(count=count))
            parts.bus.stream.warn(why)
        elif step == "ask":
            reply = await permission.ask_person(parts, PermissionSubject(name, "tool", arguments, f"{why}; go on?"))
            if reply is None:
                parts.bus.stream.warn(f"{why}; nobody can be asked")
            elif reply.choice == "no":
                raise TurnStopped("halted", f"loop: {why}")
            else:
                guard.forgive(name, arguments, outcome.raw)
        else:
            raise TurnStopped("halted", f"loop: {why}")
