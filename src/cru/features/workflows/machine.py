"""One workflow of a session: its definition, where it stands, and the rules of moving."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from cru.core.api.host import Host, NamespaceError
from cru.core.api.session_view import SessionView
from cru.core.base.config.closest import did_you_mean
from cru.core.events.answers import OutcomeKind, TurnOutcome
from cru.core.events.payloads import Custom, TurnComplete
from cru.core.events.stream import StatusChanged
from cru.features.workflows import guard, texts
from cru.features.workflows.definition import Definition, Limits, WorkflowState
from cru.features.workflows.protected import describe_changes, digest_protected
from cru.features.workflows.record import MAX_TRANSITIONS, By, Transition, WorkflowRecord, load_record, save_record

STUCK = 3
"""So many legs without progress, and the agent is left alone until the user says something."""


class WorkflowError(NamespaceError):
    """A workflow cannot do what was asked of it now."""


class WorkflowMachine:
    """A workflow, and where it stands.

    owner: the plugin that defined it
    record: None until it is started
    problem: why what is saved is not understood, "" if it is
    is_paused: no continuations until the next prompt of the user
    """

    def __init__(self, definition: Definition, owner: Host) -> None:
        self.definition = definition
        self.owner = owner
        self.record: WorkflowRecord | None = None
        self.problem = ""
        self.is_paused = False
        self._warned: set[str] = set()

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def running(self) -> bool:
        return self.record is not None and self.record.status == "running"

    @property
    def here(self) -> WorkflowState | None:
        """The state it is in; None if it was not started, or if that state is gone."""
        return None if self.record is None else self.definition.states.get(self.record.state)

    def refresh(self) -> None:
        """Read what is saved: another process may have moved it. What cannot be read counts as a state that is gone."""
        try:
            self.record, self.problem = load_record(self.owner, self.name)
        except NamespaceError as error:
            self.record, self.problem = WorkflowRecord(""), error.message
        if self.record is None:
            return
        if self.record.status == "stopped" and self.record.why:
            self.warn_once(
                f"workflow {self.name} is stopped in the state {self.record.state}: {self.record.why}; `/{self.name}` goes on"
            )
        elif self.record.status != "done" and self.here is None:
            self.warn_once(texts.unknown_state(self.definition, self.record, self.problem))

    # what a person, a script or a limit does --------------------------------------------------------------------------------------

    async def start(self, task: str, by: By) -> None:
        """Begin at the initial state. Raises WorkflowError in the middle of a run."""
        if self.record is not None and self.record.status != "done":
            raise WorkflowError(
                f"workflow {self.name} is in the middle of a run, in the state {self.record.state}",
                f"a prompt without /{self.name} goes on with it; `/{self.name} reset` ends it, then it can be started anew",
            )
        root = self.owner.session.parts.place.root
        protected = await asyncio.to_thread(digest_protected, root, self.definition.protect)
        self._write(WorkflowRecord("", task=task, protected=protected))
        await self._enter(self.definition.states[self.definition.initial], task, by)

    async def put(self, to: str, note: str, by: By) -> WorkflowState:
        """Move without asking anything. Raises WorkflowError for a state that there is not, and before the start."""
        state = self.definition.states.get(to)
        if state is None:
            known = f"there are {', '.join(self.definition.states)}"
            raise WorkflowError(
                f"workflow {self.name} has no state {to}", did_you_mean(to, self.definition.states) or known
            )
        if self.record is None:
            raise WorkflowError(f"workflow {self.name} was not started yet", f"/{self.name} TEXT starts it")
        if self.problem:  # what was saved is not understood: the user begins a new record
            self.problem = ""
        await self._enter(state, note, by)
        return state

    def stop(self, why: str) -> None:
        """Leave it as it is, until it is told to go on."""
        if self.record is not None and self.record.status == "running":
            self._write(msgspec.structs.replace(self.record, status="stopped", why=why))
            self._show("")

    def go_on(self) -> None:
        """Run again, and count anew. Raises WorkflowError if there is nothing to go on with."""
        if self.record is None or self.record.status == "done":
            raise WorkflowError(
                f"workflow {self.name} {'was not started yet' if self.record is None else 'is done'}",
                f"/{self.name} TEXT starts it",
            )
        if self.here is None:
            raise WorkflowError(texts.unknown_state(self.definition, self.record, self.problem))
        fresh = {"legs": 0, "rounds": 0, "total_legs": 0, "total_rounds": 0}
        self._write(msgspec.structs.replace(self.record, status="running", why="", **fresh))
        self.is_paused = False
        self._show(self.record.state)

    def reset(self) -> None:
        """Forget the run."""
        save_record(self.owner, self.name, None)
        self.record, self.problem, self.is_paused = None, "", False
        self._show("")

    # what the agent does ----------------------------------------------------------------------------------------------------------

    async def move(
        self, to: str, note: str, by: By = "agent", emit: Callable[[str], None] | None = None
    ) -> tuple[bool, str]:
        """Leave this state if its guard lets it: (True, what to read next), or (False, why not). Raises WorkflowError inside a guard."""
        if guard.inside_guard():
            raise WorkflowError(
                "a guard may not move the workflow", "let it return true or false: that decides about the move"
            )
        record, state = self.record, self.here
        if record is None or state is None or record.status != "running":
            return False, f"workflow {self.name} is not running"
        if to not in state.ways:
            near = did_you_mean(to, state.ways) or f"from {state.name} it goes to {', '.join(state.ways)}"
            return False, f"there is no way from {state.name} to {to}; {near}"
        why = ""
        if to in state.to and state.guard is not None:
            why = await self._check(state, to, note, emit)
        if not why and self.definition.states[to].final:
            why = await self._check_end(self.definition.states[to], note, emit)
        if self.record is not record or record.state != state.name:
            return False, f"workflow {self.name} was moved meanwhile"
        if why:
            self._write(msgspec.structs.replace(record, refused=why))
            return False, f"not moved, still in the state {state.name} of workflow {self.name}: {why}"
        await self._enter(self.definition.states[to], note, by)
        return True, texts.entry_text(self.definition, self.definition.states[to])

    async def _check(self, state: WorkflowState, to: str, note: str, emit: Callable[[str], None] | None) -> str:
        assert state.guard is not None and self.record is not None
        facts = self._guard_facts(self.record, to, note)
        return await guard.check_guard(state.guard, facts, self.owner.session.parts, emit)

    async def _check_end(self, final: WorkflowState, note: str, emit: Callable[[str], None] | None) -> str:
        """Return why the workflow cannot be done yet: a check that passed earlier fails now, or a file that checks consist of changed."""
        for name in final.recheck:
            if why := await self._check(self.definition.states[name], final.name, note, emit):
                return (
                    f"the check of the state {name} is made again, since files may have changed after it passed: {why}"
                )
        if not self.definition.protect or self.record is None:
            return ""
        now = await asyncio.to_thread(digest_protected, self.owner.session.parts.place.root, self.definition.protect)
        return describe_changes(self.record.protected, now, note)

    def count_round(self) -> None:
        if self.running and self.record is not None:
            self.record.rounds += 1
            self.record.total_rounds += 1

    async def round_over(self) -> tuple[str, TurnOutcome | None]:
        """Count a round with tool calls. Return what the agent reads in a new state, and how the turn ends if a limit is reached."""
        if self.record is None or self.here is None:
            return "", None
        save_record(self.owner, self.name, self.record)
        return await self._apply_limits()

    async def leg_over(self, over: TurnComplete) -> tuple[str, TurnOutcome | None]:
        """Count a leg. Return the text with which the agent continues, and how the turn ends if it ends here; "" and None if the workflow
        waits, or if the agent goes on by itself."""
        record, state = self.record, self.here
        if record is None or state is None:
            return "", None
        record.legs += 1
        record.total_legs += 1
        save_record(self.owner, self.name, record)
        if over.cause != "done" or self.is_paused:
            return "", None
        if over.called_user:
            return "", self._end("needs_person", over.response or "the agent called for you")
        text, end = await self._apply_limits()
        if text or end is not None or over.recurse is not None:
            return text, end
        if over.no_progress >= STUCK:
            self.is_paused = True
            why = f"{over.no_progress} legs without progress; your next prompt goes on with it"
            return "", self._end("gave_up", f"workflow {self.name} waits in the state {state.name}: {why}")
        return texts.continuation(self.definition, state, record), None

    # ------------------------------------------------------------------------------------------------------------------------------

    def _end(self, kind: OutcomeKind, why: str) -> TurnOutcome:
        """How the turn ends while the workflow is not done."""
        state = self.record.state if self.record is not None else ""
        return TurnOutcome(kind, why, (f"workflow {self.name} in the state {state}",))

    async def _apply_limits(self) -> tuple[str, TurnOutcome | None]:
        over = self._reached_limit()
        if over is None:
            return "", None
        what, then = over
        if not then:
            self.stop(what)
            why = f"workflow {self.name} is stopped: {what}; `/{self.name}` goes on and counts anew"
            return "", self._end("out_of_budget", why)
        state = await self.put(then, what, "limit")
        self.warn(f"workflow {self.name}: {what}; it goes on in the state {then}")
        return f"[workflow {self.name}: {what}]\n{texts.entry_text(self.definition, state)}", None

    def _reached_limit(self) -> tuple[str, str] | None:
        """The limit that is reached, and the state that it leads to."""
        record, state = self.record, self.here
        if record is None or state is None or record.status != "running":
            return None
        reached = _limit_text(state.limits, record.legs, record.rounds)
        if reached:
            return f"{reached} in the state {state.name}", state.limits.on_limit
        reached = _limit_text(self.definition.limits, record.total_legs, record.total_rounds)
        return (f"{reached} in all", "") if reached else None

    async def _enter(self, state: WorkflowState, note: str, by: By) -> None:
        before = self.record
        assert before is not None
        move = Transition(before.state, state.name, round(time.time(), 3), note, by)
        self._write(
            msgspec.structs.replace(
                before, state=state.name, status="done" if state.final else "running", why="", legs=0, rounds=0, refused="",
                history=[*before.history, move][-MAX_TRANSITIONS:],
            )
        )  # fmt: skip
        self._show("" if state.final else state.name)
        facts = {"workflow": self.name, "from": move.from_, "to": move.to, "note": note, "by": by}
        await self.owner.session.parts.bus.dispatch(Custom("workflow:moved", facts))

    def _guard_facts(self, record: WorkflowRecord, to: str, note: str) -> dict[str, object]:
        """What a guard's function gets."""
        return {
            "workflow": self.name, "state": record.state, "to": to, "note": note, "task": record.task, "legs": record.legs,
            "rounds": record.rounds, "session": SessionView(self.owner),
        }  # fmt: skip

    def _write(self, record: WorkflowRecord) -> None:
        save_record(self.owner, self.name, record)
        self.record = record

    def _show(self, state: str) -> None:
        """The workflow's own status line."""
        text = f"{self.name}: {state}" if state else ""
        self.owner.session.parts.bus.stream.tell(StatusChanged(self.owner.plugin.name, f"fsm:{self.name}", text))

    def warn(self, text: str) -> None:
        self.owner.session.parts.bus.stream.warn(text, self.owner.plugin.name)

    def warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self.warn(text)


def _limit_text(limits: Limits, legs: int, rounds: int) -> str:
    for most, now, word in ((limits.legs, legs, "leg"), (limits.rounds, rounds, "round")):
        if most and now >= most:
            return f"the limit of {texts.pluralize(most, word)} is reached"
    return ""
