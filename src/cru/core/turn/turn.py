"""Prompts and their queue, the turn that they start, the states that its legs go through, and how they end.

The drawing in docs/turn.md is made from the table of transitions (tests/kit/tables.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from cru.core.events.answers import Answer, Inject, OutcomeKind, TurnOutcome
from cru.core.events.payloads import Attachment
from cru.core.turn import BadTransition
from cru.core.turn.commands import split_command
from cru.core.turn.spending import UsageTotals

if TYPE_CHECKING:
    from cru.core.turn.loop_guard import LoopGuard

Cause = Literal["done", "cancelled", "halted", "interrupted", "error"]
USER, AGENT = "call_user", "call_agent"
PromptSource = Literal["user", "queue", "command", "inbox", "continuation", "recurse", "task"]
TYPED_SOURCES = ("user", "queue", "command")
"""Prompts that a person gave: each starts a turn."""
CONTINUATION_SOURCES = ("continuation", "recurse")
"""Prompts with which the agent goes on by itself."""


class LegState(StrEnum):
    IDLE = "idle"
    RECEIVING = "receiving"
    PREPARING = "preparing"
    CALLING = "calling"
    RESPONDING = "responding"
    TOOLING = "tooling"
    SETTLING = "settling"


S = LegState
STOP = "cancelled, halted, interrupted or error"

TRANSITIONS: dict[tuple[LegState, LegState], str] = {
    (S.IDLE, S.RECEIVING): "a prompt, or --resume",
    (S.RECEIVING, S.PREPARING): "the prompt is accepted",
    (S.RECEIVING, S.SETTLING): f"{STOP}; or resumed with a final reply",
    (S.PREPARING, S.CALLING): "the request is ready",
    (S.PREPARING, S.TOOLING): "resumed: calls without a result run again",
    (S.PREPARING, S.SETTLING): STOP,
    (S.CALLING, S.RESPONDING): "the reply is whole",
    (S.CALLING, S.PREPARING): "the request was too large and the context is compacted",
    (S.CALLING, S.SETTLING): STOP,
    (S.RESPONDING, S.TOOLING): "the reply asks for tools",
    (S.RESPONDING, S.SETTLING): f"final; or {STOP}",
    (S.TOOLING, S.PREPARING): "every call has a result",
    (S.TOOLING, S.SETTLING): f"a tool ended the turn; out of fuel; or {STOP}",
    (S.SETTLING, S.RECEIVING): "a queued prompt, or an inject",
    (S.SETTLING, S.IDLE): "nothing is left to do",
}


class StateMachine:
    """Where a session is. `watch` hears every transition as (old, new)."""

    def __init__(self, watch: Callable[[LegState, LegState], None]) -> None:
        self.state = LegState.IDLE
        self._watch = watch

    def to(self, new: LegState) -> None:
        """Go to a state; raises BadTransition where the table has no arrow."""
        if (self.state, new) not in TRANSITIONS:
            raise BadTransition(f"no transition from {self.state} to {new}")
        old, self.state = self.state, new
        self._watch(old, new)


class Prompt(Struct, frozen=True):
    """One prompt on its way into a leg.

    ref: its log entry, if it is there already (--resume)
    resolved: it was accepted then
    before, after: injects that travel with it
    model: holds for this leg only; "": the configured one
    command: what was typed, if a command gave it
    literal: it is no command, whatever it begins with
    key: of a prompt that is asked once (idempotency.py)
    tasks: ids of those whose ends it tells
    """

    text: str
    source: PromptSource = "user"
    attachments: tuple[Attachment, ...] = ()
    ref: str = ""
    resolved: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    model: str = ""
    command: str = ""
    literal: bool = False
    key: str = ""
    tasks: tuple[str, ...] = ()


class TaskReport(Struct, frozen=True):
    """What the model has to hear of tasks, and their ids, which the log keeps beside the text: so the log knows what was told."""

    text: str
    tasks: tuple[str, ...]


class Turn(Struct):
    """One user prompt until idle.

    fuel: tool batches and continuations that are left; < 0: no limit
    fallback: who goes on after the running leg's final reply
    continuations, recursions: how many there were
    no_progress: legs in a row with the same reply and no new result
    last_response: the reply of the leg before
    results: finished calls
    results_before: the same when the leg before ended
    guard: what sees that the turn goes round in circles; None: nothing was counted yet
    fuel_given: the fuel of the setting, and what a person added
    is_fuel_set: a handler said how much is left: nobody is asked for more
    more_continuations: what a person allowed beyond the setting
    called_user: the running leg ended with call_user
    has_answered: the agent was told once that nobody can answer its question
    is_ending: handlers are asked whether it ends as done
    has_told_polling: a person was told that polls are slowed down
    """

    id: str
    fuel: int
    fallback: str = USER
    continuations: int = 0
    recursions: int = 0
    no_progress: int = 0
    last_response: str | None = None
    results: int = 0
    results_before: int = 0
    guard: LoopGuard | None = None
    fuel_given: int = 0
    is_fuel_set: bool = False
    more_continuations: int = 0
    called_user: bool = False
    has_answered: bool = False
    is_ending: bool = False
    has_told_polling: bool = False

    def take_fuel(self, fuel: int) -> None:
        """What a handler left of it."""
        self.is_fuel_set = self.is_fuel_set or fuel != self.fuel
        self.fuel = fuel


DONE = TurnOutcome("done")


class LegResult(Struct, frozen=True):
    """How a leg ended. Of the last leg of a turn, `outcome` says how the turn did.

    response: the text of its last reply
    ref: the log entry of its prompt
    reason: why it was cancelled or halted
    error: the message for a person
    hint: the next step for them
    code: the exit status of an error
    recurse: the note of a call of `recurse`; None: there was none
    usage: what the requests of its turn have used so far, those of sub-agents included
    """

    cause: Cause
    response: str = ""
    ref: str = ""
    rounds: int = 0
    reason: str = ""
    error: str = ""
    hint: str = ""
    code: int = 0
    recurse: str | None = None
    usage: UsageTotals = UsageTotals()
    outcome: TurnOutcome = DONE

    def __post_init__(self) -> None:
        if self.cause != "done" and self.outcome is DONE:
            kind: OutcomeKind = "interrupted" if self.cause == "interrupted" else "failed"
            force_setattr(self, "outcome", TurnOutcome(kind, self.reason or self.error))

    @property
    def is_done(self) -> bool:
        return self.outcome.kind == "done"


def end_turn(result: LegResult, outcome: TurnOutcome) -> LegResult:
    """The result of the last leg with the outcome of its turn. A turn that is not done counts as halted."""
    if outcome.kind == "done":
        return replace(result, outcome=outcome)
    cause: Cause = "interrupted" if outcome.kind == "interrupted" else "halted"
    return replace(result, cause=cause, reason=outcome.reason, outcome=outcome)


class TurnStopped(Exception):
    """Ends a leg early with a cause; `outcome`: of the turn, "failed" unless a limit or a handler says otherwise."""

    def __init__(self, cause: Cause, reason: str = "", outcome: TurnOutcome | OutcomeKind = "failed") -> None:
        super().__init__(reason)
        self.cause: Cause = cause
        self.reason = reason
        self.outcome = TurnOutcome(outcome, reason) if isinstance(outcome, str) else outcome


def stop_for(answer: Answer, what: str) -> TurnStopped:
    """The end of the leg that a cancel or halt means."""
    cause: Cause = "halted" if answer.halt else "cancelled"
    reason = answer.reason or f"{what} was {cause}"
    return TurnStopped(cause, reason, outcome_of(answer, reason))


def outcome_of(answer: Answer, reason: str) -> TurnOutcome:
    """The outcome that an answer which stops the turn gives it; "failed" if the answer names none."""
    outcome = answer.outcome or TurnOutcome("failed")
    return outcome if outcome.reason else replace(outcome, reason=reason)


class PromptQueue:
    """First in, first out. `closed` means that nothing more is started; `opening` is what handlers of the session's start injected."""

    def __init__(self) -> None:
        self._waiting: deque[Prompt] = deque()
        self.closed = False
        self.opening: Inject | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, prompt: Prompt) -> None:
        self._waiting.append(prompt)

    def put_opening(self) -> None:
        """Put what is to be answered first before everything that waits; it is no command, whatever it begins with."""
        if self.opening is not None:
            self._waiting.appendleft(Prompt(self.opening.content, model=self.opening.model, literal=True))
            self.opening = None

    def command(self) -> tuple[str, str] | None:
        """The name and the rest of the command at the head; None if there is none."""
        head = self._waiting[0] if self._waiting and not self.closed else None
        typed = head is not None and head.source in ("user", "queue") and not head.literal
        return split_command(head.text) if head is not None and typed else None

    def prompt(self) -> Prompt | None:
        """Take the prompt at the head; None also if a command stands there."""
        return self.take() if self._waiting and not self.closed and self.command() is None else None

    def take(self) -> Prompt:
        return self._waiting.popleft()

    def remove(self, text: str) -> None:
        """Take out what was typed so, wherever it waits."""
        self._waiting = deque(p for p in self._waiting if p.text != text or p.source not in ("user", "queue"))

    def clear(self) -> int:
        """Let everything go; how many."""
        count = len(self._waiting)
        self._waiting.clear()
        return count
