"""Why a hook did what it did in a turn, or nothing: in plain sentences, from the records (`cru hooks why`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct, field

from cru.core.base.values.visible import SHOWN, in_a_line
from cru.core.events.answers import strength
from cru.core.events.catalog import BY_NAME
from cru.core.events.journal import HandlerRecord, JournalLine, SkipKind, SkipReason
from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.model.entry import HookEntry, hook_id
from cru.core.hooks.model.status import Activation, EntryStatus
from cru.core.hooks.records import FiringRecord, effects_of
from cru.core.hooks.report.query import HookQuery
from cru.core.hooks.report.turn_history import RecordedCall, RecordedTurn
from cru.core.hooks.report.wording import (
    FATES,
    NEVER,
    SAYS,
    describe_answer,
    describe_firing,
    describe_mismatch,
    describe_other_event,
    describe_outcome,
    describe_owner,
    describe_pattern,
    describe_state,
)

PROGRAM = "program"
"""In the place of a dialect: a hook of a plugin that is a program."""
HANDLER = "handler"
"""In the place of a dialect: a function of a plugin."""
OWN = ("cru", "hooks")
"""Owners of handlers that are cru's own."""
NOBODYS = "no plugin's was called in this turn (`cru plugin list` shows who has it)"


class HookExplanation(Struct):
    """What is said of one hook.

    fired: whether it ran
    text: a sentence without its subject
    ms: wall-clock milliseconds
    exit: its exit status
    times: how often it holds
    """

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
    """One dispatch.

    what: the call or the like that it was about
    outcome: what came of all answers, in sentences
    fate: what became of the call
    """

    seq: int
    event: str
    what: str
    outcome: list[str]
    fate: str = ""
    hooks: list[HookExplanation] = field(default_factory=list)


class TurnExplanation(Struct):
    """A turn, as far as it was asked about.

    began: seconds since the epoch
    remarks: what holds for all
    occasions: dispatches in which a hook that was asked about took part
    silent: hooks that never fired in it, and why
    """

    prompt: str
    source: str
    began: float
    cause: str
    remarks: list[str]
    occasions: list[DispatchExplanation]
    silent: list[HookExplanation]


def explain_turn(turn: RecordedTurn, inventory: HookInventory, query: HookQuery) -> TurnExplanation:
    """Everything about a turn that was asked for."""
    return _TurnExplainer(turn, inventory, query).explain()


class _TurnExplainer:
    def __init__(self, turn: RecordedTurn, inventory: HookInventory, query: HookQuery) -> None:
        self._turn, self._inventory, self._query = turn, inventory, query
        self._statuses = {status.entry.id: status for status in inventory.loaded.known}
        self._order = {id: rank for rank, id in enumerate(self._statuses)}
        self._calls = {call.id: call for call in turn.calls}
        self._fired: set[str] = set()
        # Texts of why hooks were passed by, and how often: by id of an entry, or by (owner, hook, file) of a program,
        # or by (owner, event, place) of a handler; "" counts how often it ran.
        self._skipped: dict[str, Counter[str]] = {}
        self._programs: dict[tuple[str, str, str], Counter[str]] = {}
        self._handlers: dict[tuple[str, str, str], Counter[str]] = {}
        self._mismatches: dict[str, list[tuple[JournalLine, str]]] = {}

    def explain(self) -> TurnExplanation:
        turn = self._turn
        occasions = [dispatch for line in turn.dispatches if (dispatch := self._dispatch(line)) is not None]
        occasions += self._unfinished_dispatches()
        silent = [*self._silent_hooks(), *self._silent_programs(), *self._silent_handlers()]
        return TurnExplanation(turn.prompt, turn.source, turn.began, turn.cause, self._remarks(), occasions, silent)

    def _remarks(self) -> list[str]:
        tool, remarks = self._query.tool, []
        called = list(dict.fromkeys(call.name for call in self._turn.calls))
        if tool and tool not in called:
            others = f"; it called: {', '.join(called)}" if called else "; it called no tool"
            remarks.append(f"the model did not call {tool} in this turn{others}")
        if self._turn.load is None and self._statuses:
            remarks.append("the session of this turn knew no hooks: the files came later, or --hooks=none was given")
        left_out = [problem for problem in self._inventory.loaded.problems if problem.loses_hooks]
        remarks += [in_a_line(f"left out: {problem}") for problem in left_out[:SHOWN]]
        if len(left_out) > SHOWN:
            remarks.append(f"and {len(left_out) - SHOWN} more are left out: `cru hooks list`")
        return remarks

    # dispatches --------------------------------------------------------------------------------------------------------------------

    def _dispatch(self, line: JournalLine) -> DispatchExplanation | None:
        """None if nobody who was asked about did anything; why not is counted."""
        is_asked_about = self._query.event(line.event) and self._query.tool in ("", line.ident)
        if not is_asked_about or not any(self._matters(line, heard) for heard in line.heard):
            return None
        hooks = [self._handler(line, heard) for heard in line.heard if self._belongs(line, heard)]
        if not any(hook.fired for hook in hooks):
            return None
        hooks.sort(key=lambda hook: self._order.get(hook.id, len(self._order) if hook.dialect == PROGRAM else -1))
        is_child = line.agent_type != ""
        call = (
            None if is_child else self._calls.get(line.call)
        )  # another context has a sub-agent's calls, by ids of its own
        what = f"{call.name} {call.arguments}" if call is not None else line.ident
        if is_child:
            what = f"{what} (sub-agent {line.agent_type} {line.agent})"
        fate = _fate(call) if call is not None and line.event == "tool:before_call" else ""
        outcome = list(describe_outcome(line, self._inventory.loaded))
        return DispatchExplanation(line.seq, line.event, what, outcome, fate, hooks)

    def _unfinished_dispatches(self) -> Iterator[DispatchExplanation]:
        """Dispatches that the journal has none of, since they were not over when the run ended; hooks that had begun say so."""
        finished = {(line.run, line.seq) for line in self._turn.dispatches}
        unfinished: dict[tuple[str, int], DispatchExplanation] = {}
        for firing in self._turn.firings:
            is_asked_about = self._query.event(firing.ours) and self._query.tool in ("", firing.subject)
            place = (firing.run, firing.seq)
            if place in finished or not is_asked_about:
                continue
            text = "the run was interrupted before this was decided"
            new = DispatchExplanation(firing.seq, firing.ours, firing.subject, [text])
            dispatch = unfinished.setdefault(place, new)
            dispatch.hooks.append(self._hook(firing.id, describe_firing(firing), firing, fired=True))
            self._fired.add(firing.id)
        yield from unfinished.values()

    def _belongs(self, line: JournalLine, heard: HandlerRecord) -> bool:
        """Whether a dispatch tells of this handler; if not, what is said of it in the end is counted."""
        if _is_of_program(heard):
            return self._count_program(line, heard)
        id = hook_id(heard.owner)
        if not id:
            return self._count_handler(line, heard)
        if not heard.skipped:
            self._fired.add(id)
            return True
        if heard.skip is not None and heard.skip.kind is SkipKind.MISMATCH:
            self._mismatches.setdefault(id, []).append((line, heard.skip.detail))
            return False
        self._skipped.setdefault(id, Counter())[self._skip_text(line, heard)] += 1
        return not _is_other_event(heard.skip)

    def _count_program(self, line: JournalLine, heard: HandlerRecord) -> bool:
        if self._query.program not in ("", heard.hook):
            return False
        text = self._skip_text(line, heard) if heard.skipped else ""
        self._programs.setdefault((heard.owner, heard.hook, _file_of(heard)), Counter())[text] += 1
        return not _is_other_event(heard.skip)

    def _count_handler(self, line: JournalLine, heard: HandlerRecord) -> bool:
        if heard.owner in OWN:
            return heard.has_failed or bool(strength(heard.answer) or effects_of(heard.answer))
        text = self._skip_text(line, heard) if heard.skipped else ""
        self._handlers.setdefault((heard.owner, line.event, heard.where), Counter())[text] += 1
        return not heard.skipped

    def _matters(self, line: JournalLine, heard: HandlerRecord) -> bool:
        """Whether it is a hook, or a handler that decided something, failed, could have refused, or is asked about by its event."""
        if hook_id(heard.owner) or heard.hook or heard.has_failed or strength(heard.answer):
            return True
        row = BY_NAME.get(line.event)
        is_gate = row is not None and row.kind == "gate"
        return heard.owner not in OWN and (self._query.word != "" or is_gate)

    def _handler(self, line: JournalLine, heard: HandlerRecord) -> HookExplanation:
        if _is_of_program(heard):
            return self._program(line, heard)
        id = hook_id(heard.owner)
        if not id:
            text = _spoken(heard) + "".join(f"; left out: {text}" for text in heard.rejected)
            return HookExplanation(
                heard.owner, heard.owner, HANDLER, line.event, heard.where, True, f"ran {heard.ms:.0f} ms: {text}", heard.ms,
                decision=heard.answer.decision,
            )  # fmt: skip
        firing = self._turn.firing(line, id)
        if heard.skipped:
            return self._hook(id, self._skip_text(line, heard), firing)
        if firing is None:
            text = f"fired, but its line in the record is gone; {_spoken(heard)}"
            return self._hook(id, text, fired=True)
        hook = self._hook(id, describe_firing(firing, heard.rejected), firing, fired=True)
        hook.ms, hook.exit, hook.decision = firing.ms, firing.exit, firing.decision
        return hook

    def _program(self, line: JournalLine, heard: HandlerRecord) -> HookExplanation:
        answer = heard.answer
        if heard.skipped:
            text = self._skip_text(line, heard)
        else:
            words = _spoken(heard)
            if heard.has_failed:
                words = f"failed ({heard.error}), so it {SAYS.get(answer.decision, 'has no say')}"
            elif answer.note and answer.decision == "none" and not effects_of(answer):
                words = answer.note
            text = f"ran {heard.ms:.0f} ms: {words}"
        return HookExplanation(
            heard.owner, heard.owner, PROGRAM, heard.hook, _file_of(heard), not heard.skipped, text, heard.ms,
            decision=answer.decision,
        )  # fmt: skip

    def _hook(self, id: str, text: str, firing: FiringRecord | None = None, *, fired: bool = False) -> HookExplanation:
        status = self._statuses.get(id)
        if status is not None:
            entry = status.entry
            return HookExplanation(id, entry.label, entry.dialect, entry.event, entry.where, fired, text)
        label, where, event = (firing.label, firing.where, firing.event) if firing is not None else (id, "", "")
        text += " (it is in no file any more)"
        return HookExplanation(id, label, id.partition("-")[0], event, where, fired, text)

    # why not -----------------------------------------------------------------------------------------------------------------------

    def _skip_text(self, line: JournalLine, heard: HandlerRecord) -> str:
        """Why a handler was passed by; in the journal's own words if the line has no more, or if those say it best."""
        match heard.skip:
            case SkipReason(kind=SkipKind.OTHER_EVENT):
                return describe_other_event(line)
            case SkipReason(kind=SkipKind.ONCE):
                return "it runs once a session, and had run"
            case SkipReason(kind=SkipKind.DUPLICATE, detail=id):
                return f"it does the same as {describe_owner(f'hook {id}', self._statuses)}, which ran in its place"
            case SkipReason(kind=SkipKind.MAIN_AGENT_ONLY):
                return "a sub-agent raised it, and include_sub_agents is off"
            case SkipReason(kind=SkipKind.PATTERN, detail=pattern):
                return describe_pattern(pattern, line.ident)
            case SkipReason(kind=SkipKind.STOPPED, detail=owner):
                return f"{describe_owner(owner, self._statuses)} had ended it before"
        return heard.skipped

    def _silent_hooks(self) -> Iterator[HookExplanation]:
        """Hooks that did not fire at all; of what was asked about by name, those too that fired at one time and not at another."""
        for status in self._inventory.loaded.known:
            entry = status.entry
            has_fired = entry.id in self._fired
            is_asked_about = self._query.entry(entry, self._inventory.dialects[entry.dialect])
            if not is_asked_about or (has_fired and not self._query.word):
                continue
            reasons = dict(self._skipped.get(entry.id, {}))
            if entry.id in self._mismatches:
                reasons[self._mismatch_text(entry)] = len(self._mismatches[entry.id])
            if not reasons and not has_fired:
                reasons[self._absence_text(status)] = 1
            for text, times in reasons.items():
                hook = self._hook(entry.id, text)
                hook.times = times
                yield hook

    def _silent_programs(self) -> Iterator[HookExplanation]:
        """Hooks of programs that were not run at all; one that was asked about by name, also where it was passed by."""
        name = self._query.program
        for (owner, hook, file), reasons in self._programs.items():
            if "" in reasons and not name:
                continue
            for text, times in reasons.items():
                if text:
                    yield HookExplanation(owner, owner, PROGRAM, hook, file, False, text, times=times)
        if name and not self._programs:
            from cru.core.plugins.executables.hooks.table import BY_NAME

            later = BY_NAME[name].later
            yield HookExplanation(name, name, "", name, "", False, f"never called: {later}" if later else NOBODYS)

    def _silent_handlers(self) -> Iterator[HookExplanation]:
        """Functions of plugins that were not called at all; of what was asked about by name, those too that were at one time."""
        for (owner, event, where), reasons in self._handlers.items():
            if "" not in reasons or self._query.word:
                for text, times in reasons.items():
                    if text:
                        yield HookExplanation(owner, owner, HANDLER, event, where, False, text, times=times)

    def _mismatch_text(self, entry: HookEntry) -> str:
        """Everything that its matcher did not fit, in one sentence."""
        mismatches = self._mismatches[entry.id]
        subjects = list(dict.fromkeys(subject for _, subject in mismatches))
        calls = [self._calls[line.call] for line, _ in mismatches if line.call in self._calls and not line.agent_type]
        dialect, event = self._inventory.dialects[entry.dialect], mismatches[-1][0].event
        return describe_mismatch(entry, dialect, event, subjects, calls[-1] if calls else None)

    def _absence_text(self, status: EntryStatus) -> str:
        """Why nothing at all is recorded of an entry."""
        entry = status.entry
        dialect = self._inventory.dialects[entry.dialect]
        if status.state is not Activation.ACTIVE:
            return describe_state(status, dialect)
        idle = self._turn.load.idle.get(entry.id) if self._turn.load is not None else None
        if idle is not None:
            return f"it was {idle[0]} when this turn's session read its file; it is active now"
        events = [mapping.event for mapping in dialect.events[entry.event] if mapping.event]
        if any(self._turn.counts.get(event) for event in events):
            return "it was not there yet, or not active, when this turn ran"
        never = next((text for name, text in NEVER if all(event.startswith(name) for event in events)), "")
        return f"{never or f'there was no {entry.event}'} in this turn"


def _is_of_program(heard: HandlerRecord) -> bool:
    return heard.hook != ""


def _file_of(heard: HandlerRecord) -> str:
    """Where the program of a hook lies: behind it the journal has the hook."""
    return heard.where.removesuffix(f" {heard.hook}")


def _is_other_event(reason: SkipReason | None) -> bool:
    return reason is not None and reason.kind is SkipKind.OTHER_EVENT


def _spoken(heard: HandlerRecord) -> str:
    if heard.has_failed:
        return f"failed: {heard.error}"
    answer = heard.answer
    decision = "halt" if answer.halt else answer.decision
    return describe_answer(decision, answer.reason, effects_of(answer))


def _fate(call: RecordedCall) -> str:
    if call.result is None:
        return "no result: the run ended before"
    first = call.result.strip().partition("\n")[0]
    fate = FATES.get(call.which, call.which)
    return f"{fate}: {first}" if call.which and first else fate
