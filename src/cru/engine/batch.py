"""All calls of one reply: decide each in the model's order, then run, then hand the batch over."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Literal

from cru.engine import log_writer, permission, tool_call
from cru.engine.parts import Parts
from cru.engine.pending import PendingContext, context_texts
from cru.engine.tool_call import PreparedCall, ToolOutcome
from cru.engine.turn import Turn, TurnStopped
from cru.events.payloads import ToolBatchCompleted
from cru.permissions.asker import PermissionSubject
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
        self._rounds: deque[list[CallKey]] = deque(maxlen=LOOP_WINDOW)
        self._warned: Counter[CallKey] = Counter()
        self._now: set[CallKey] = set()

    def next_round(self) -> None:
        self._rounds.append([])
        self._now.clear()

    def seen(self, name: str, arguments: str, result: str) -> tuple[LoopStep, int]:
        """Take one finished call; says what to do now and how often it was seen."""
        key = (name, arguments, hash(result))
        if not self._rounds:
            self.next_round()
        self._rounds[-1].append(key)
        count = sum(calls.count(key) for calls in self._rounds)
        if count <= LOOP_MOST or key in self._now:  # one step a round: the model must see each
            return "", count
        self._now.add(key)
        self._warned[key] += 1
        return LOOP_STEPS[min(self._warned[key], len(LOOP_STEPS)) - 1], count

    def forgive(self, name: str, arguments: str, result: str) -> None:
        """A person said: go on."""
        self._warned.pop((name, arguments, hash(result)), None)
        self._rounds.clear()


async def run(
    parts: Parts, calls: tuple[ToolCall, ...], turn: Turn, coming: PendingContext, guard: LoopGuard
) -> list[ToolOutcome]:
    """Run a batch; what came of each call. Raises Stop("halted") after every call has its result."""
    decided: list[PreparedCall] = []
    for call in calls:
        made = await tool_call.decide(parts, call)
        decided.append(made)
        if made.answer.halt:
            await _not_run(parts, calls, decided)
            raise TurnStopped("halted", made.answer.reason or f"halted by {made.by or 'a hook'}")
    done, halted = await _run_all(parts, decided)
    for one in done:
        coming.injects.extend(one.injects)
    guard.next_round()
    turn.results += len(done)
    outcome = await parts.bus.dispatch(ToolBatchCompleted(calls, turn.fuel, turn.fallback))
    turn.fuel, turn.fallback = outcome.payload.fuel, outcome.payload.fallback
    coming.take(context_texts(parts, outcome.answer), outcome.answer.inject)
    if outcome.answer.halt or halted:
        raise TurnStopped("halted", outcome.answer.reason or halted)
    await _mind_loops(parts, done, guard, coming)
    return done


async def _not_run(parts: Parts, calls: tuple[ToolCall, ...], decided: list[PreparedCall]) -> None:
    """A halt while deciding: none runs. Who was refused keeps its own words, the rest say who halted."""
    by = decided[-1].by or "a hook"
    for at, call in enumerate(calls):
        if at < len(decided) and not decided[at].runs:
            await tool_call.run(parts, decided[at])
        else:
            _left_out(parts, call, by)


def _left_out(parts: Parts, call: ToolCall, by: str) -> None:
    log_writer.result(parts, call, NOT_RUN.format(by=by), True, which="halted")


async def _run_all(parts: Parts, decided: list[PreparedCall]) -> tuple[list[ToolOutcome], str]:
    """In the model's order; neighbours that may run at the same time do. Also why the rest was left out, "" if nobody halted."""
    done: list[ToolOutcome] = []
    finishing = asyncio.Lock()
    for together in _stretches(decided):
        by = next((d.halted_by for d in done if d.answer.halt), "")
        if by:
            for one in together:
                _left_out(parts, one.call, by)
        elif len(together) == 1:
            done.append(await tool_call.run(parts, together[0]))
        else:
            done += await _all([asyncio.create_task(tool_call.run(parts, d, finishing)) for d in together])
    halting = next((d for d in done if d.answer.halt), None)
    return done, "" if halting is None else halting.answer.reason or f"halted by {halting.halted_by}"


def _stretches(decided: list[PreparedCall]) -> list[list[PreparedCall]]:
    """Calls that run side by side: a call whose tool must be alone ends a stretch, so that a read never overtakes a write."""
    stretches: list[list[PreparedCall]] = []
    alone = True
    for one in decided:
        parallel = not one.runs or (one.tool is not None and one.tool.parallel)
        if alone or not parallel:
            stretches.append([])
        stretches[-1].append(one)
        alone = not parallel
    return stretches


async def _all(tasks: list[asyncio.Task[ToolOutcome]]) -> list[ToolOutcome]:
    """All results; if one raises or this is cancelled, nothing is left running behind."""
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _mind_loops(parts: Parts, done: list[ToolOutcome], guard: LoopGuard, coming: PendingContext) -> None:
    for one in done:
        name, arguments = one.call.name, one.call.arguments
        step, count = guard.seen(name, arguments, one.raw)
        if not step:
            continue
        why = f"{name}: the same call gave the same result {count} times"
        if step == "nudge":
            coming.context.append(NUDGE.format(count=count))
            parts.bus.stream.warn(why)
        elif step == "ask":
            reply = await permission.ask(parts, PermissionSubject(name, "tool", arguments, f"{why}; go on?"))
            if reply is None:
                parts.bus.stream.warn(f"{why}; nobody can be asked")
            elif reply.choice == "no":
                raise TurnStopped("halted", f"loop: {why}")
            else:
                guard.forgive(name, arguments, one.raw)
        else:
            raise TurnStopped("halted", f"loop: {why}")
