"""Why a hook did what it did in a turn, or nothing: in plain sentences, from the records (`cru hooks why`)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from cru.events.answers import strength
from cru.events.journal import Heard, JournalLine
from cru.extensions.executables.executable import hook_at, is_unconcerned
from cru.extensions.hooks.loader import EntryStatus
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.records import FiringRecord, effects_of
from cru.extensions.hooks.report.query import HookQuery
from cru.extensions.hooks.report.turn_history import RecordedCall, RecordedTurn
from cru.extensions.hooks.report.wording import (
    FATES,
    NEVER,
    OWNER,
    SAYS,
    describe_answer,
    describe_firing,
    describe_mismatch,
    describe_other_event,
    describe_outcome,
    describe_owner,
    describe_state,
)
from cru.extensions.hooks.run.command import MISMATCH, ONCE, OTHER_MOMENT, SAME
from cru.extensions.hooks.setup import HookInventory

PROGRAM = "program"
"""In the place of a dialect: a hook of a plugin that is a program."""
NOBODYS = "no plugin's was called in this turn (`cru plugin list` shows who has it)"


class HookExplanation(Struct):
    """What is said of one hook. fired: whether it ran · text: a sentence without its subject."""

    id: str
    label: str
    dialect: str
    event: str
    where: str
    fired: bool
    text: str
    ms: float = 0.0
    exit: int | None = None
    decision: str = "none"
    times: int = 1


class DispatchExplanation(Struct):
    """One dispatch. what: the call or the like that it was about · outcome: what came of all answers, in sentences · fate: what became of
    the call."""

    seq: int
    event: str
    what: str
    outcome: list[str]
    fate: str = ""
    hooks: list[HookExplanation] = field(default_factory=list)


class TurnExplanation(Struct):
    """A turn, as far as it was asked about. remarks: what holds for all · silent: hooks that never fired in it, and why."""

    prompt: str
    source: str
    began: float
    cause: str
    remarks: list[str]
    occasions: list[DispatchExplanation]
    silent: list[HookExplanation]


def explain_turn(turn: RecordedTurn, found: HookInventory, wanted: HookQuery) -> TurnExplanation:
    """Everything about a turn that was asked for."""
    return _Teller(turn, found, wanted).story()


class _Teller:
    def __init__(self, turn: RecordedTurn, found: HookInventory, wanted: HookQuery) -> None:
        self._turn, self._found, self._wanted = turn, found, wanted
        self._known = {one.entry.id: one for one in found.loaded.known}
        self._calls = {call.id: call for call in turn.calls}
        self._fired: set[str] = set()
        self._order = {id: at for at, id in enumerate(self._known)}
        self._skipped: dict[str, dict[str, int]] = {}
        self._programs: dict[tuple[str, str, str], dict[str, int]] = {}
        self._unfit: dict[str, list[tuple[JournalLine, str]]] = {}

    def story(self) -> TurnExplanation:
        turn = self._turn
        occasions = [one for one in map(self._occasion, self._dispatches()) if one is not None]
        occasions += self._broken_off()
        return TurnExplanation(
            turn.prompt, turn.source, turn.began, turn.cause, self._remarks(), occasions, list(self._silent())
        )

    def _dispatches(self) -> Iterator[JournalLine]:
        tool = self._wanted.tool
        for line in self._turn.dispatches:
            if self._wanted.event(line.event) and (not tool or line.ident == tool) and any(map(_matters, line.heard)):
                yield line

    def _broken_off(self) -> Iterator[DispatchExplanation]:
        """Dispatches that the journal has none of, since they were not over when the run ended; hooks that had begun say so."""
        whole = {(line.run, line.seq) for line in self._turn.dispatches}
        found: dict[tuple[str, int], DispatchExplanation] = {}
        for fired in self._turn.fired:
            asked = self._wanted.event(fired.ours) and self._wanted.tool in ("", fired.subject)
            if (fired.run, fired.seq) in whole or not asked:
                continue
            new = DispatchExplanation(
                fired.seq, fired.ours, fired.subject, ["the run was interrupted before this was decided"]
            )
            one = found.setdefault((fired.run, fired.seq), new)
            one.hooks.append(self._about(fired.id, self._known.get(fired.id), fired, True, describe_firing(fired)))
            self._fired.add(fired.id)
        yield from found.values()

    def _remarks(self) -> list[str]:
        tool, said = self._wanted.tool, []
        called = list(dict.fromkeys(call.name for call in self._turn.calls))
        if tool and tool not in called:
            near = f"; it called: {', '.join(called)}" if called else "; it called no tool"
            said.append(f"the model did not call {tool} in this turn{near}")
        if self._turn.found is None and self._known:
            said.append("the session of this turn knew no hooks: the files came later, or --hooks=none was given")
        return said

    # an event that happened --------------------------------------------------------------------------------------------------------

    def _occasion(self, line: JournalLine) -> DispatchExplanation | None:
        """None if nobody who was asked about did anything; why not is counted."""
        hooks = [self._line(line, heard) for heard in line.heard if self._counts(line, heard)]
        if not any(one.fired for one in hooks):
            return None
        hooks.sort(key=lambda one: self._order.get(one.id, len(self._order) if one.dialect == PROGRAM else -1))
        call = self._calls.get(line.call)
        what = f"{call.name} {call.arguments}" if call is not None else line.ident
        fate = _fate(call) if call is not None and line.event == "tool:before_call" else ""
        return DispatchExplanation(
            line.seq, line.event, what, list(describe_outcome(line, self._found.loaded)), fate, hooks
        )

    def _counts(self, line: JournalLine, heard: Heard) -> bool:
        """Whether an occasion tells of this handler; if not, what is said of it in the end is noted."""
        if _program(heard):
            return self._counts_program(line, heard)
        if not _is_hook(heard):
            return _spoke(heard)
        id, why = heard.owner.removeprefix(OWNER), heard.skipped
        if not why:
            self._fired.add(id)
            return True
        if why.startswith(MISMATCH):
            self._unfit.setdefault(id, []).append((line, why.removeprefix(MISMATCH)))
            return False
        text = self._why_not(line, why)
        reasons = self._skipped.setdefault(id, {})
        reasons[text] = reasons.get(text, 0) + 1
        return not why.startswith(OTHER_MOMENT)

    def _counts_program(self, line: JournalLine, heard: Heard) -> bool:
        hook = _program(heard)
        if self._wanted.program not in ("", hook):
            return False
        place = (heard.owner, hook, heard.where.removesuffix(f" {hook}"))
        reasons = self._programs.setdefault(place, {})
        text = self._why_not(line, heard.skipped) if heard.skipped else ""
        reasons[text] = reasons.get(text, 0) + 1
        return not is_unconcerned(heard.skipped)

    def _program_line(self, line: JournalLine, heard: Heard) -> HookExplanation:
        hook, answer = _program(heard), heard.answer
        said = self._spoken(heard)
        if heard.error:
            said = f"failed ({heard.error}), so it {SAYS.get(answer.decision, 'has no say')}"
        elif answer.note and answer.decision == "none" and not effects_of(answer):
            said = answer.note
        text = self._why_not(line, heard.skipped) if heard.skipped else f"ran {heard.ms:.0f} ms: {said}"
        return HookExplanation(
            heard.owner, heard.owner, PROGRAM, hook, heard.where.removesuffix(f" {hook}"), not heard.skipped, text, heard.ms,
            decision=answer.decision,
        )  # fmt: skip

    def _line(self, line: JournalLine, heard: Heard) -> HookExplanation:
        if _program(heard):
            return self._program_line(line, heard)
        id = heard.owner.removeprefix(OWNER)
        if not _is_hook(heard):
            return HookExplanation(heard.owner, heard.owner, "", line.event, heard.where, True, self._spoken(heard), heard.ms,
                        decision=heard.answer.decision)  # fmt: skip
        known, fired = self._known.get(id), self._turn.firing(line, id)
        if heard.skipped:
            return self._about(id, known, fired, False, self._why_not(line, heard.skipped))
        if fired is None:
            return self._about(
                id, known, None, True, f"fired, but its line in the record is gone; {self._spoken(heard)}"
            )
        made = self._about(id, known, fired, True, describe_firing(fired, heard.rejected))
        made.ms, made.exit, made.decision = fired.ms, fired.exit, fired.decision
        return made

    def _about(
        self, id: str, known: EntryStatus | None, fired: FiringRecord | None, did: bool, text: str
    ) -> HookExplanation:
        if known is None:
            label, where, event = (fired.label, fired.where, fired.event) if fired is not None else (id, "", "")
            return HookExplanation(
                id, label, id.partition("-")[0], event, where, did, f"{text} (it is in no file any more)"
            )
        entry = known.entry
        return HookExplanation(id, entry.label, entry.dialect, entry.event, entry.where, did, text)

    def _spoken(self, heard: Heard) -> str:
        if heard.error:
            return f"failed: {heard.error}"
        answer = heard.answer
        decision = "halt" if answer.halt else answer.decision
        return describe_answer(decision, answer.reason, effects_of(answer))

    def _name(self, owner: str) -> str:
        return describe_owner(owner, self._known)

    # why not -----------------------------------------------------------------------------------------------------------------------

    def _why_not(self, line: JournalLine, why: str) -> str:
        if why.startswith(OTHER_MOMENT):
            return describe_other_event(line)
        if why == ONCE:
            return "it runs once a session, and had run"
        if why.startswith(SAME):
            return f"it does the same as {self._name(OWNER + why.removeprefix(SAME))}, which ran in its place"
        if why == "main agent only":
            return "a sub-agent raised it, and include_sub_agents is off"
        return (
            f"{self._name(why.removeprefix('cancelled by '))} had ended it before"
            if why.startswith("cancelled by ")
            else why
        )

    def _silent(self) -> Iterator[HookExplanation]:
        """Hooks that did not fire at all; of what was asked about by name, those too that fired at one time and not at another."""
        for one in self._found.loaded.known:
            entry = one.entry
            did_fire = entry.id in self._fired
            if not self._wanted.entry(entry, self._found.dialects[entry.dialect]) or (
                did_fire and not self._wanted.word
            ):
                continue
            reasons = dict(self._skipped.get(entry.id, {}))
            if entry.id in self._unfit:
                reasons[self._misfit(entry)] = len(self._unfit[entry.id])
            if not reasons and not did_fire:
                reasons[self._absent(one)] = 1
            for text, times in reasons.items():
                made = self._about(entry.id, one, None, False, text)
                made.times = times
                yield made
        yield from self._silent_programs()

    def _silent_programs(self) -> Iterator[HookExplanation]:
        """Hooks of programs that were not run at all; one that was asked about by name, also where it was passed by."""
        for (owner, hook, where), reasons in self._programs.items():
            if "" in reasons and not self._wanted.program:
                continue
            for text, times in reasons.items():
                if text:
                    yield HookExplanation(owner, owner, PROGRAM, hook, where, False, text, times=times)
        if self._wanted.program and not self._programs:
            from cru.extensions.executables.hooks.table import BY_NAME

            name = self._wanted.program
            later = BY_NAME[name].later
            yield HookExplanation(name, name, "", name, "", False, f"never called: {later}" if later else NOBODYS)

    def _misfit(self, entry: HookEntry) -> str:
        """Everything that its matcher did not fit, in one sentence."""
        unfit = self._unfit[entry.id]
        subjects = list(dict.fromkeys(subject for _, subject in unfit))
        line = unfit[-1][0]
        calls = [self._calls[one.call] for one, _ in unfit if one.call in self._calls]
        return describe_mismatch(
            entry, self._found.dialects[entry.dialect], line.event, subjects, calls[-1] if calls else None
        )

    def _absent(self, one: EntryStatus) -> str:
        """Why nothing at all is recorded of an entry."""
        then = self._turn.found.idle.get(one.entry.id) if self._turn.found is not None else None
        if one.state != "active":
            return describe_state(one, self._found.dialects[one.entry.dialect])
        if then is not None:
            return f"it was {then[0]} when this turn's session read its file; it is active now"
        dialect = self._found.dialects[one.entry.dialect]
        events = [moment.event for moment in dialect.events[one.entry.event] if moment.event]
        missing = next((text for name, text in NEVER if all(event.startswith(name) for event in events)), "")
        if any(self._turn.counts.get(event) for event in events):
            return "it was not there yet, or not active, when this turn ran"
        return f"{missing or f'there was no {one.entry.event}'} in this turn"


def _program(heard: Heard) -> str:
    """The hook, if it is one of a plugin that is a program."""
    return "" if _is_hook(heard) else hook_at(heard.where)


def _is_hook(heard: Heard) -> bool:
    return heard.owner.startswith(OWNER)


def _matters(heard: Heard) -> bool:
    """Whether it is a hook, or a plugin's handler that decided something or failed."""
    return _is_hook(heard) or bool(_program(heard)) or bool(heard.error or strength(heard.answer))


def _spoke(heard: Heard) -> bool:
    return bool(heard.error or strength(heard.answer) or effects_of(heard.answer))


def _fate(call: RecordedCall) -> str:
    if call.result is None:
        return "no result: the run ended before"
    first = call.result.strip().partition("\n")[0]
    fate = FATES.get(call.which, call.which)
    return f"{fate}: {first}" if call.which and first else fate
