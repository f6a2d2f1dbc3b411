"""One dispatch under way: groups of handlers in order, their answers folded, their failures isolated."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.cancellation import from_outside
from cru.core.events import BadAnswer
from cru.core.events.answers import (
    LONGEST_REASON,
    PASS,
    STRENGTH,
    Answer,
    TurnOutcome,
    add,
    apply_change,
    cut,
    stopped,
    strength,
)
from cru.core.events.calling import (
    SLOW,
    LastSlowStep,
    await_answer,
    copy_payload,
    describe_error,
    in_thread,
    validate_answer,
)
from cru.core.events.catalog import EventRow
from cru.core.events.journal import HandlerRecord, SkipReason
from cru.core.events.registry import Group, Handler, HandlerFunction
from cru.core.events.stamp import FRAME, DispatchBudget, Event, Frame, Stamp
from cru.core.events.stream import Stream

SLOW_MS = SLOW * 1000


class Contribution(Struct, frozen=True):
    """An answer that counts: whose it is, and how strong."""

    owner: str
    strength: int
    failed: bool


Who: TypeAlias = "tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...], bool]"


class HandlerFailure(Struct, frozen=True):
    """That a handler came to nothing: a fact, whatever its text.

    text: why, for people and the journal
    refuses: as far as its answer can be read, it says no
    """

    text: str
    refuses: bool = False


class _HandlerRun(Struct, frozen=True):
    handler: Handler
    answer: Answer
    ms: float
    failure: HandlerFailure | None


class Chain:
    """The state of one dispatch. `payload` is what the next group sees; `stopped_by` names who ended the chain."""

    __slots__ = (
        "_allows",
        "_frame",
        "_stream",
        "_total",
        "contributions",
        "edits",
        "heard",
        "injected_by",
        "payload",
        "row",
        "stamp",
        "stopped_by",
    )  # fmt: skip

    def __init__(self, row: EventRow, stamp: Stamp, payload: Struct, frame: Frame, stream: Stream) -> None:
        self.row = row
        self.stamp = stamp
        self.payload = payload
        self.heard: list[HandlerRecord] = []
        self.contributions: list[Contribution] = []
        self.edits: list[tuple[str, str]] = []
        self.stopped_by = ""
        self.injected_by: HandlerFunction | None = None
        self._frame = frame
        self._stream = stream
        self._total = PASS
        self._allows: dict[str, Group] = {}

    def skip(self, handler: Handler, reason: SkipReason) -> None:
        heard = HandlerRecord(
            handler.owner, handler.where, handler.id, skipped=reason.text, skip=reason, hook=handler.hook
        )
        self.heard.append(heard)

    def folded(self) -> Answer:
        """The answers together. On events that are no gates a cancel did no more than stop the chain."""
        answer = self._total
        if answer is PASS:
            return PASS
        if self.row.kind != "gate" and not answer.halt and answer.decision != "none":
            answer = replace(answer, decision="none", reason="")
        return stopped(answer) if answer.stops else answer

    def who(self) -> Who:
        """(whose answers count, who of them decided, the edits, whether failures decided). Of a stopped dispatch only what
        stopped it counts."""
        edits = tuple(self.edits)
        if len(self.contributions) == 1:
            only = self.contributions[0]
            owners = (only.owner,)
            return owners, owners if only.strength else (), edits, only.failed
        if not self.contributions:
            return (), (), edits, False
        top = max(s.strength for s in self.contributions)
        most = [s for s in self.contributions if s.strength == top] if top else []
        counting = most if top >= STRENGTH["deny"] else self.contributions
        failed = bool(most) and all(s.failed for s in most)
        return (
            tuple(dict.fromkeys(s.owner for s in counting)),
            tuple(dict.fromkeys(s.owner for s in most)),
            edits,
            failed,
        )

    async def run(self, handlers: list[Handler]) -> None:
        """Every one gets the payload as it is now; changes and answers compose in order. Command hooks run at once,
        executables one after another, before any answer of theirs is looked at."""
        payload = self.payload
        if handlers[0].lane == "executables":
            self.compose(*[await self.call(handler, payload) for handler in handlers])
        else:
            self.compose(*await asyncio.gather(*[self.call(handler, payload) for handler in handlers]))

    async def call(self, handler: Handler, payload: Struct) -> _HandlerRun:
        """Ask one handler; never raises for its fault."""
        event = Event(self.row, self.stamp, payload if handler.copies else copy_payload(payload))
        frame = self._frame
        below = frame.below or DispatchBudget()
        owners = frame.owners | handler.owners if frame.owners else handler.owners
        inner = Frame(owners, frame.depth + 1, self.stamp.dispatch_seq, frame.purpose, below)
        token = FRAME.set(inner)
        answer, plain = PASS, False
        failure: HandlerFailure | None = None
        started = perf_counter()
        try:
            raw = in_thread(handler, event) if handler.thread else handler.call(event)
            plain = raw is None or isinstance(raw, Answer)
            if raw is not None:
                answer = validate_answer(raw) if plain else await await_answer(handler, raw)
        except BaseException as raised:  # the boundary around other people's code, sys.exit() too: reported below
            if from_outside(raised):
                raise
            failure = HandlerFailure(describe_error(raised), isinstance(raised, BadAnswer) and raised.refuses)
        finally:
            FRAME.reset(token)
            below.over = frame.below is None
        ms = int((perf_counter() - started) * 1_000_000) / 1000
        if plain and ms > SLOW_MS:
            LastSlowStep.at = perf_counter()
            self._warn(handler, f"took {ms:.0f} ms on {self.row.name}, and everything else waited")
        return _HandlerRun(handler, answer, ms, failure)

    def compose(self, *group: _HandlerRun) -> None:
        """The answers of one group, whose handlers all had the same payload."""
        changers: dict[str, Group] = {}
        allows: dict[str, Group] = {}
        total = PASS
        for run in group:
            handler, answer, failure, at_fault = run.handler, run.answer, run.failure, False
            rejected: list[str] = []
            if answer is not PASS:
                answer, failure = self._take(handler, answer, rejected, changers)
            if failure is not None:
                failed = self._failed(handler, failure)
                at_fault = strength(failed) > strength(answer)
                answer = (
                    failed if at_fault else add(answer, Answer(outcome=failed.outcome)) if failed.outcome else answer
                )
            self.heard.append(
                HandlerRecord(
                    handler.owner, handler.where, handler.id, run.ms, "", failure.text if failure is not None else "", answer,
                    tuple(rejected), None, handler.hook, failure is not None,
                )
            )  # fmt: skip
            if answer is PASS:
                continue
            total = _beside(total, answer) if handler.lane == "commands" else add(total, answer)
            self.contributions.append(Contribution(handler.owner, strength(answer), at_fault))
            if answer.inject is not None:
                self.injected_by = handler.call
            if answer.decision == "allow":
                allows[handler.owner] = handler.group
            if answer.stops and not self.stopped_by:
                self.stopped_by = handler.owner
        if allows:
            self._allows.update(allows)
        self._total = add(self._total, total)
        if changers and self._allows:
            self._void(changers, allows)

    def _take(
        self, handler: Handler, answer: Answer, rejected: list[str], changers: dict[str, Group]
    ) -> tuple[Answer, HandlerFailure | None]:
        """Edit the payload, and leave out of the answer what has no place on this event. A bad change makes the whole answer
        fail, but for its "no"."""
        row, before, edits = self.row, self.payload, len(self.edits)
        if len(answer.reason) > LONGEST_REASON:
            answer = replace(answer, reason=cut(answer.reason, LONGEST_REASON))
        if answer.outcome is not None and len(answer.outcome.reason) > LONGEST_REASON:
            answer = replace(answer, outcome=replace(answer.outcome, reason=cut(answer.outcome.reason, LONGEST_REASON)))
        for change in answer.changes:
            if change.field not in row.writable:
                answer = replace(answer, changes=tuple(other for other in answer.changes if other is not change))
                rejected.append(f"`{change.field}` cannot be changed (only {', '.join(row.writable) or 'nothing'})")
                continue
            try:
                self.payload = apply_change(self.payload, change)
            except BadAnswer as error:
                self.payload = before
                del self.edits[edits:]
                return _refusal(answer), HandlerFailure(error.message)
            self.edits.append((change.field, handler.owner))
        if (
            answer.context
            or answer.context_files
            or answer.inject
            or answer.result is not None
            or answer.halt
            or answer.outcome
        ):
            answer = _placed(row, answer, rejected)
        if answer.updates:
            answer = _signed(row, answer, handler.owner, rejected)
        for what in rejected:
            self._warn(handler, f"{row.name}: {what}")
        if self.payload is not before:
            changers[handler.owner] = handler.group
        return answer, None

    def _void(self, changers: dict[str, Group], allows: dict[str, Group]) -> None:
        """An allow covers the input as its group left it, if those of the group who changed it allow it, too: another owner's change
        ends it otherwise (docs/decisions/answers.md)."""
        voided = {
            owner
            for owner, group in self._allows.items()
            if any(by != owner and (other != group or by not in allows) for by, other in changers.items())
        }
        for owner in voided:
            del self._allows[owner]
        allowed = STRENGTH["allow"]
        self.contributions = [s for s in self.contributions if s.strength != allowed or s.owner not in voided]
        if voided and not self._allows and self._total.decision == "allow":
            self._total = replace(self._total, decision="none", reason="")

    def _failed(self, handler: Handler, failure: HandlerFailure) -> Answer:
        self._warn(handler, f"failed on {self.row.name}: {failure.text}")
        policy = handler.on_error or (
            "deny" if failure.refuses else self.row.fails if handler.lane == "inline" else "pass"
        )
        if policy not in ("deny", "ask") or self.row.kind != "gate":
            return PASS
        reason = f"the handler of {handler.owner} failed: {failure.text}"
        if self.row.outcome:  # nothing is announced that could be denied: what it guards is how the turn ends
            return Answer(outcome=TurnOutcome("failed", reason), note="error")
        return Answer(decision=policy, reason=reason, note="error")

    def _warn(self, handler: Handler, text: str) -> None:
        place = f" ({handler.where})" if handler.where else ""
        self._stream.warn(f"{handler.owner}{place}: {text}", handler.owner)


def _beside(total: Answer, answer: Answer) -> Answer:
    """Command hooks of one group know nothing of each other: no inject of theirs takes the place of another one."""
    first, last = total.inject, answer.inject
    if first is not None and last is not None:
        answer = replace(answer, inject=replace(last, content=f"{first.content}\n\n{last.content}"))
    return add(total, answer)


def _refusal(answer: Answer) -> Answer:
    """What is left of an answer that failed: a deny, a halt or a question holds; a leave was given to a change that is not made."""
    if strength(answer) <= STRENGTH["allow"]:
        return PASS
    return Answer(decision=answer.decision, halt=answer.halt, reason=answer.reason, note="error")


def _placed(row: EventRow, answer: Answer, rejected: list[str]) -> Answer:
    """The answer without what has no place on this event: nobody would read it."""
    without: dict[str, object] = {}
    if (answer.context or answer.context_files) and not row.context:
        without.update(context=(), context_files=())
        rejected.append("context has no place here")
    if answer.inject is not None and not row.inject:
        without["inject"] = None
        rejected.append("an inject has no place here")
    if answer.result is not None and not row.result:
        without["result"] = None
        rejected.append("a result has no place here")
    if answer.outcome is not None and not (row.outcome or (answer.halt and row.in_turn)):
        without["outcome"] = None
        rejected.append("an outcome has no place here")
    if answer.halt and not row.in_turn:
        without.update(halt=False, decision="deny")
        rejected.append("there is no turn to halt")
    return replace(answer, **without) if without else answer


def _signed(row: EventRow, answer: Answer, owner: str, rejected: list[str]) -> Answer:
    """Updates with the name of who gives them, where they have a place."""
    if not row.updates:
        rejected.append("changes of what is permitted have no place here")
        return replace(answer, updates=())
    return replace(answer, updates=tuple([replace(update, by=owner) for update in answer.updates]))
