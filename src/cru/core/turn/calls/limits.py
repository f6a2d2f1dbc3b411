"""What keeps a turn from costing without end: rounds without progress, fuel, continuations, budgets. A person who is there is asked for
more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from cru.core.base.values.errors import CruError
from cru.core.guard.rules.gate import PermissionReply, PermissionSubject
from cru.core.turn.calls import permission
from cru.core.turn.loop_guard import CountedCall, LoopGuard, LoopStep
from cru.core.turn.parts import EngineSettings, Parts
from cru.core.turn.prompts import PendingContext
from cru.core.turn.spending import BudgetKind, BudgetReached, ScopeKind, format_cost
from cru.core.turn.turn import Turn, TurnStopped

NUDGE = (
    "Nothing new has come of your last {count} rounds: the same calls gave the same results, calls were refused, or nothing was said. "
    "Do not repeat them: change the approach, or say what blocks you."
)
OUT_OF_FUEL = (
    "this prompt has cost {cost} tool batches and continuations, all of its fuel; a new prompt (`go on`) may cost as many again, and the "
    "setting `fuel` (-s fuel=N) allows more for one"
)
AGENT_OUT_OF_FUEL = "this task has cost {cost} tool batches and continuations, all of its fuel; {where} allows more"
FROM_USER = "[The user, asked whether to go on: {words}]"
OUT_OF_GIVEN_FUEL = "a handler set how much fuel (tool batches and continuations) was left, and none is"


async def check_calls(
    parts: Parts, turn: Turn, pending: PendingContext, calls: Iterable[CountedCall], latest: str
) -> None:
    """Count a round, as LoopGuard.take_calls does, and wait if the model polls. Raises TurnStopped if nothing new comes any more."""
    guard, keeper = _guard(parts.settings, turn), parts.services.changes.known
    await _act(
        parts, turn, pending, guard.take_calls(calls, keeper.store.new_states if keeper is not None else 0), latest
    )
    if not guard.wait:
        return
    if not turn.has_told_polling:
        turn.has_told_polling = True
        most = parts.settings.poll_backoff
        parts.bus.stream.warn(
            f"the model polls `{latest[:80]}`: equal polls are up to {most:g} s apart (setting poll_backoff)"
        )
    await asyncio.sleep(guard.wait)


async def check_reply(parts: Parts, turn: Turn, pending: PendingContext, text: str) -> None:
    """The same for a final reply after which the agent is to go on by itself."""
    await _act(parts, turn, pending, _guard(parts.settings, turn).take_reply(), text)


async def check_fuel(parts: Parts, turn: Turn, pending: PendingContext) -> None:
    """Raises TurnStopped("halted") if there is no fuel, and no person who gives more. What a handler has set, nobody raises."""
    if turn.fuel != 0:
        return
    if turn.is_fuel_set:
        raise _out_of_budget(OUT_OF_GIVEN_FUEL)
    more = parts.settings.fuel
    cost = f"this prompt has cost {turn.fuel_given} tool batches and continuations"
    if not await _allows(parts, pending, "fuel", f"{cost}; go on for {more} more?"):
        text = AGENT_OUT_OF_FUEL if parts.services.tasks.fuel_limit else OUT_OF_FUEL
        raise _out_of_budget(text.format(cost=turn.fuel_given, where=parts.services.tasks.fuel_limit))
    turn.fuel = more
    turn.fuel_given += more


async def check_continuations(parts: Parts, turn: Turn, pending: PendingContext) -> None:
    """Raises TurnStopped("halted") if there were as many continuations as there may be, and no person allows more."""
    most = parts.settings.max_continuations
    if not most or turn.continuations < most + turn.more_continuations:
        return
    cost = f"this prompt has cost {turn.continuations} continuations"
    if not await _allows(parts, pending, "max_continuations", f"{cost}; go on for {most} more?"):
        raise _out_of_budget(f"{turn.continuations} continuations for one prompt (setting max_continuations)")
    turn.more_continuations += most


def _out_of_budget(reason: str) -> TurnStopped:
    return TurnStopped("halted", reason, "out_of_budget")


def _guard(settings: EngineSettings, turn: Turn) -> LoopGuard:
    if turn.guard is None:
        turn.guard = LoopGuard(settings.max_idle_rounds, settings.poll_backoff)
    return turn.guard


async def _act(parts: Parts, turn: Turn, pending: PendingContext, step: LoopStep, latest: str) -> None:
    guard = _guard(parts.settings, turn)
    why = f"{guard.rounds} rounds brought nothing new"
    if step is LoopStep.STOP:
        raise TurnStopped("halted", f"{why} (setting max_idle_rounds)", "gave_up")
    if step is LoopStep.NUDGE:
        pending.context.append(NUDGE.format(count=guard.rounds))
        parts.bus.stream.warn(f"{why}; the model is told")
    elif step is LoopStep.ASK:
        reply = await _ask(parts, pending, PermissionSubject("loop", "flow", latest, f"{why}; go on?", is_limit=True))
        if reply is None:
            parts.bus.stream.warn(f"{why}; nobody can be asked")
        elif reply.choice == "no":
            raise TurnStopped("halted", why, "gave_up")
        else:
            guard.forgive()


async def check_budget(parts: Parts, pending: PendingContext) -> None:
    """Raises TurnStopped("halted") if a budget is used up, and no person gives more. Tells once that a price is not known."""
    ledger = parts.models.ledger
    if ledger.must_tell_unpriced:
        ledger.has_told_unpriced = True
        parts.bus.stream.warn(_unpriced(ledger.needs_cost))
    while (reached := ledger.reached()) is not None:
        cost, more = describe_reached(reached)
        is_allowed = not reached.scope.refused and await _allows(
            parts, pending, f"budget.{reached.kind.value}", f"{cost}; go on{more}?"
        )
        if not is_allowed:
            reached.scope.refused = True
            raise _out_of_budget(f"{cost}; {_raise_hint(reached)}")
        ledger.extend(reached)


def describe_reached(reached: BudgetReached) -> tuple[str, str]:
    """What is used up, and what a yes gives."""
    whose, used, limit = reached.scope.kind.value, reached.used, reached.limit
    if reached.kind is BudgetKind.PRICE:
        return f"the price of a request of {whose} is not known, and `budget.strict` is set", ""
    step = getattr(reached.scope.initial_limits, reached.kind.value)
    if reached.kind is BudgetKind.TOKENS:
        return f"{whose} has used {used:,.0f} tokens of {limit:,.0f}", f" for {step:,.0f} more"
    if reached.kind is BudgetKind.COST:
        return f"{whose} has cost {format_cost(used)} of {format_cost(limit)}", f" for {format_cost(step)} more"
    return f"{whose} has taken {used:,.0f} s of {limit:,.0f}", f" for {step:,.0f} s more"


def _raise_hint(reached: BudgetReached) -> str:
    name = reached.kind.value
    if reached.kind is BudgetKind.PRICE:
        return 'the price can be set (`[models."ID"] input_price`, `output_price`), and `-s budget.strict=false` goes on without'
    if reached.scope.kind is ScopeKind.SESSION:
        return f"a new run begins at 0, and `-s budget.session.{name}=N` allows more for one"
    if reached.scope.kind is ScopeKind.TASK:
        return "what it has done so far is kept"
    return f"a new prompt (`go on`) may use as much again, and `-s budget.{name}=N` allows more for one run"


def _unpriced(needs_cost: bool) -> str:
    from cru.core.models.prices import load_table

    why = load_table()[1] if needs_cost else ""
    advice = 'set `[models."ID"] input_price` and `output_price`' + (f" ({why})" if why else "")
    return f"what this model costs is not known, so `max_cost` cannot hold for it: {advice}; `budget.strict` ends the turn instead"


async def _allows(parts: Parts, pending: PendingContext, setting: str, question: str) -> bool:
    """Whether a person who is there allows as much again."""
    reply = await _ask(parts, pending, PermissionSubject(setting, "flow", "", question, is_limit=True))
    return reply is not None and reply.choice != "no"


async def _ask(parts: Parts, pending: PendingContext, subject: PermissionSubject) -> PermissionReply | None:
    """The person's answer; None if nobody gave one. Words behind it go to the model."""
    try:
        reply = await permission.ask_person(parts, subject)
    except (TimeoutError, CruError, OSError) as error:
        parts.bus.stream.warn(f"the question could not be asked: {error or 'nobody answered in time'}")
        return None
    if reply is not None and reply.reason:
        _pass_on(parts, pending, reply)
    return reply


def _pass_on(parts: Parts, pending: PendingContext, reply: PermissionReply) -> None:
    """The words behind an answer: into the next request, or, if the turn ends here, into the inbox, where the next prompt finds them."""
    words = FROM_USER.format(words=reply.reason)
    if reply.choice != "no":
        pending.context.append(words)
        return
    from cru.core.conversations.inbox import deliver, make_message

    try:
        deliver(parts.store.folder, make_message(parts.prompt.username, parts.store.name, words))
    except (CruError, OSError) as error:
        parts.bus.stream.warn(f"`{reply.reason}` could not be kept for the next prompt: {error}")
