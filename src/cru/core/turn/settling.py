"""Settling: the end of every leg. `turn:complete` fires once, then the first rule that matches says what comes next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cru.core.events.answers import PASS, Answer, Inject, TurnOutcome, add, join_outcomes
from cru.core.events.bus import Outcome
from cru.core.events.payloads import InjectionPending, TurnComplete, TurnEnding
from cru.core.events.stamp import Event
from cru.core.guard.rules import NoAsker
from cru.core.turn import log_writer
from cru.core.turn.parts import Parts, SessionServices
from cru.core.turn.prompts import PendingContext, context_texts, last_model
from cru.core.turn.turn import AGENT, LegResult, Prompt, PromptQueue, Turn, TurnStopped, outcome_of

if TYPE_CHECKING:
    from cru.core.turn.ports import Waker

GO_ON_TEXT = "[Go on by yourself. Call call_user when you need the user, or when you are done.]"
NOBODY_TEXT = "[Nobody can answer. Decide for yourself and continue, and say what you assumed.]"
RECURSE_TEXT = "[You asked to go on by yourself. Your note follows.]\n{note}"


class Continuation(Struct, frozen=True):
    """What follows a leg.

    prompt: of the next leg; None: the session is idle
    drained: why queued prompts are dropped; "": they are not
    outcome: how the turn ends, where it ends otherwise than its last leg
    """

    prompt: Prompt | None = None
    drained: str = ""
    outcome: TurnOutcome | None = None


async def settle(
    parts: Parts, result: LegResult, turn: Turn, pending: PendingContext, queue: PromptQueue
) -> Continuation:
    """The settling table of docs/turn.md. The log knows the leg's end, and the continuation, before anything else happens."""
    if (keeper := parts.services.changes.known) is not None:
        keeper.begin_look()  # what handlers and the user do from here on is not the commands'
    try:
        outcome = await _complete(parts, result, turn, len(queue))
        answer = await _last_word(parts, result, turn, pending, outcome.answer, is_alone=not len(queue))
    except asyncio.CancelledError:  # the leg is over all the same
        log_writer.leg_ended(parts, result.ref, "interrupted" if turn.is_ending else result.cause)
        pending.injects.clear()
        raise
    injects = [*pending.injects, *filter(None, (answer.inject,))]
    pending.injects.clear()
    pending.context.extend(context_texts(parts, answer))
    if answer.halt or result.cause in ("halted", "interrupted"):
        return _stop(parts, result, answer)
    ended = answer.outcome if result.cause == "done" else None
    if result.cause != "done" or answer.stops:
        injects = []
    elif ended is not None and ended.kind == "needs_person" and not len(queue):
        injects = _answer_for_person(parts, turn, injects)
    queued = queue.prompt()
    if queued is not None:
        log_writer.leg_ended(parts, result.ref, result.cause)
        for inject in injects:
            await parts.bus.dispatch(InjectionPending(inject.content, inject.position, False))
        return Continuation(join_injects(queued, injects))
    stopped = await why_not_continue(parts, turn, pending, result.response) if injects else None
    if injects and stopped is None:
        is_recursion = outcome.injected_by is inject_recursion and outcome.payload.recurse is not None
        return await _continue(parts, result, turn, injects, is_recursion)
    if stopped is not None:
        return _stop_at_limit(parts, result, stopped, ended)
    log_writer.leg_ended(parts, result.ref, result.cause, ended or result.outcome)
    report = await report_background(parts, turn, pending, result.response) if result.cause == "done" else None
    return report or Continuation(outcome=ended)


def interrupted(turn: Turn) -> Continuation:
    """Return what follows a leg whose settling was interrupted. It is unfinished if handlers were asked whether it ends as done."""
    outcome = TurnOutcome("interrupted", "interrupted") if turn.is_ending else None
    turn.is_ending = False
    return Continuation(drained="interrupted", outcome=outcome)


async def _last_word(
    parts: Parts, result: LegResult, turn: Turn, pending: PendingContext, answer: Answer, is_alone: bool
) -> Answer:
    """Ask once more where the turn would end as done, since nothing continues it; the answers to both events together."""
    goes_on = not is_alone or bool(pending.injects) or answer.inject is not None
    is_done = answer.outcome is None or answer.outcome.kind == "done"
    if result.cause != "done" or answer.halt or goes_on or not is_done:
        return answer
    evidence = answer.outcome.evidence if answer.outcome is not None else ()
    turn.is_ending = True  # an interruption from here on leaves it unfinished
    ending = (await parts.bus.dispatch(TurnEnding(result.response, result.ref, evidence))).answer
    turn.is_ending = False
    if ending.decision == "deny":
        ending = replace(ending, outcome=outcome_of(ending, ending.reason or "a handler of turn:ending said no"))
    return answer if ending is PASS else add(answer, ending)


def _stop_at_limit(parts: Parts, result: LegResult, stopped: TurnOutcome, ended: TurnOutcome | None) -> Continuation:
    """End a turn that a limit keeps from continuing, with what a discipline says is open."""
    outcome = join_outcomes(stopped, ended)
    log_writer.leg_ended(parts, result.ref, result.cause, outcome)
    return Continuation(drained=stopped.reason, outcome=outcome)


def _stop(parts: Parts, result: LegResult, answer: Answer) -> Continuation:
    """End a turn that was halted or interrupted in its last leg, or is halted now."""
    is_done = result.cause == "done"
    why = answer.reason or result.reason or ("halted" if is_done else result.cause)
    ended = outcome_of(answer, why) if is_done else None
    log_writer.leg_ended(parts, result.ref, result.cause, ended or result.outcome)
    return Continuation(None, why, ended)


def _answer_for_person(parts: Parts, turn: Turn, injects: list[Inject]) -> list[Inject]:
    """Return the prompts with which the agent continues after a question: none if a person may answer. In an unattended run it learns once
    in a turn that no one answers, and its next question ends the turn."""
    if turn.has_answered or not isinstance(parts.services.face.asker, NoAsker):
        return []
    turn.has_answered = True
    return [Inject(NOBODY_TEXT), *injects]


async def report_background(parts: Parts, turn: Turn, pending: PendingContext, response: str) -> Continuation | None:
    """A leg about what ended in the background, and what woke the agent; None if nothing did. It counts as a continuation."""
    if not any(waker.has_report() for waker in wakers(parts.services)):
        return None
    stopped = await why_not_continue(parts, turn, pending, response)
    if stopped is not None:
        return Continuation(drained=stopped.reason, outcome=stopped)
    reports = [report for waker in wakers(parts.services) if (report := waker.take_report())]
    work = parts.services.tasks.background
    tasks = work.take_reported() if work is not None else ()
    return Continuation(Prompt("\n\n".join(reports), "task", tasks=tasks)) if reports else None


async def wake(parts: Parts, turn: Turn, pending: PendingContext) -> Prompt | None:
    """The same while the agent is idle: it counts for the turn that there was last."""
    report = await report_background(parts, turn, pending, turn.last_response or "")
    if report is None:
        return None
    if report.outcome is not None:
        parts.bus.stream.warn(f"what ended in the background waits for your next prompt: {report.drained}")
    return report.prompt


def wakers(services: SessionServices) -> list[Waker]:
    """Everybody who may have something to say by itself."""
    tasks = services.tasks
    return [*tasks.wakers, *([tasks.background] if tasks.background is not None else [])]


async def why_not_continue(parts: Parts, turn: Turn, pending: PendingContext, response: str) -> TurnOutcome | None:
    """Count one continuation after this reply; the outcome if a limit is reached that ends the turn."""
    from cru.core.turn.calls import limits

    try:
        await limits.check_continuations(parts, turn, pending)
        await limits.check_fuel(parts, turn, pending)
        await limits.check_reply(parts, turn, pending, response)
    except TurnStopped as stop:
        return stop.outcome
    turn.continuations += 1
    if turn.fuel > 0:
        turn.fuel -= 1
    return None


async def _complete(parts: Parts, result: LegResult, turn: Turn, queued: int) -> Outcome[TurnComplete]:
    recurse = result.recurse
    if recurse is not None and turn.recursions >= parts.settings.max_recursion_depth:
        parts.bus.stream.warn(f"recurse: the limit of {turn.recursions} is reached (setting max_recursion_depth)")
        recurse = None
    stuck = 0
    if result.cause == "done":  # legs in a row that gave the same reply without any new tool result
        same = turn.last_response == result.response and turn.results == turn.results_before
        stuck = turn.no_progress = turn.no_progress + 1 if same else 0
        turn.last_response, turn.results_before = result.response, turn.results
    if stuck == 1:
        parts.bus.stream.warn("no progress: the same reply twice and no new tool result")
    payload = TurnComplete(
        result.cause, result.response, result.ref, result.rounds, turn.continuations, stuck, result.error, recurse, queued,
        turn.fallback, turn.called_user,
    )  # fmt: skip
    return await parts.bus.dispatch(payload)


async def _continue(
    parts: Parts, result: LegResult, turn: Turn, injects: list[Inject], is_recursion: bool
) -> Continuation:
    text = "\n\n".join(inject.content for inject in injects)
    turn.recursions += is_recursion
    prompt = Prompt(text, "recurse" if is_recursion else "continuation", model=last_model(injects))
    ref = log_writer.leg_ended_and_continued(parts, result.ref, result.cause, prompt)
    announced = await parts.bus.dispatch(InjectionPending(text, injects[-1].position))
    if announced.answer.halt:
        log_writer.blocked(parts, ref, announced.answer.reason)
        return Continuation(drained=announced.answer.reason)
    return Continuation(replace(prompt, ref=ref))


def join_injects(queued: Prompt, injects: list[Inject]) -> Prompt:
    """A queued prompt with what handlers want said before and after its text."""
    before = tuple(i.content for i in injects if i.position == "user_prefix")
    after = tuple(i.content for i in injects if i.position == "user_suffix")
    return replace(queued, before=before, after=after, model=last_model(injects) or queued.model)


def inject_recursion(event: Event[TurnComplete]) -> Answer | None:
    """The built-in handler of `turn:complete`: a call of `recurse` makes the agent go on by itself (chibi 0.4), and so does the fallback
    `call_agent` after a final reply (chibi 0.6)."""
    note = event.payload.recurse
    if note is not None:
        return Answer(inject=Inject(RECURSE_TEXT.format(note=note)))
    return Answer(inject=Inject(GO_ON_TEXT)) if event.payload.fallback == AGENT else None
