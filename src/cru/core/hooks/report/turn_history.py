"""One turn as its records tell it: what was called, which events were dispatched to whom, what hooks did."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from cru.core.base.values.messages import TOOL_CALL, TOOL_RESULT, Entry
from cru.core.conversations.entries import LogProblem
from cru.core.conversations.store import FileContext
from cru.core.events.journal import JournalLine
from cru.core.hooks import records
from cru.core.hooks.records import FiringRecord, LoadRecord
from cru.core.records.requests import TraceLine
from cru.core.records.trace import RecordedTrace, pick_turn, read_dispatches


class RecordedCall(Struct):
    """One call of the model.

    arguments: as it wrote them
    result: what it read, None if there is none
    which: as in `tool:failed`
    """

    id: str
    name: str
    arguments: str
    result: str | None = None
    which: str = ""


class RecordedTurn(Struct):
    """A turn as its records tell it.

    number: from 1 on; `last` is how many are recorded
    prompt, source, began: of its first leg; seconds since the epoch
    cause: of its last leg, "" if it is not finished
    counts: dispatches by event
    load: what its session found when it read the configurations, None if there were none
    problems: lines of the records that cannot be read
    """

    number: int
    last: int
    prompt: str
    source: str
    began: float
    cause: str
    counts: dict[str, int]
    calls: list[RecordedCall]
    dispatches: list[JournalLine]
    firings: list[FiringRecord]
    load: LoadRecord | None
    problems: list[LogProblem]

    def firing(self, line: JournalLine, id: str) -> FiringRecord | None:
        """What an entry did in a dispatch; None if it did not fire."""
        place = (line.run, line.seq, id)
        return next((firing for firing in reversed(self.firings) if (firing.run, firing.seq, firing.id) == place), None)


class _TurnSpan(Struct):
    """What of the records belongs to a turn.

    runs: of its legs
    begin, end: seconds since the epoch, where another turn of the same run is the neighbour
    first, until: the log entry that began it, and the one that began the next turn, "" if there is none
    """

    runs: set[str]
    begin: float
    end: float
    first: str
    until: str

    def covers(self, run: str, time: float) -> bool:
        return run in self.runs and self.begin <= time < self.end


def read_turn(store: FileContext, number: int = -1) -> RecordedTurn | None:
    """A recorded turn, the first one is 1, the last one -1; None if there are none. Raises NotInTrace."""
    with RecordedTrace(store.folder) as trace:
        places = [place for place in trace.turns if place.turn]
        if not places:
            return None
        index = pick_turn(places, number)
        near = range(max(index - 1, 0), min(index + 2, len(places)))
        turns = {at: trace.lines(places[at]) for at in near}
        problems = trace.problems
    span = _span(turns, index)
    entries = store.entries_between(span.first, span.until)
    leg = _legs(turns[index])[0].data
    ends = [line.data for line in turns[index] if line.kind == "end"]
    counts: Counter[str] = Counter()
    for end in ends:
        counts.update(end["counts"])
    recorded = [line for line in records.read_lines(store.folder, span.runs) if line.run in span.runs]
    return RecordedTurn(
        number=index + 1, last=len(places), prompt=next((entry.content for entry in entries if entry.id == span.first), ""),
        source=leg["source"], began=leg["time"], cause=ends[-1]["cause"] if ends else "", counts=dict(counts),
        calls=_calls(entries), dispatches=sorted(_dispatches(store.folder, span, problems), key=lambda line: line.seq),
        firings=[line for line in reversed(recorded) if isinstance(line, FiringRecord) and span.covers(line.run, line.time)],
        load=next((line for line in recorded if isinstance(line, LoadRecord) and line.time < span.end), None),
        problems=problems,
    )  # fmt: skip


def _span(turns: Mapping[int, list[TraceLine]], index: int) -> _TurnSpan:
    """`turns`: the one at `index` and its neighbours."""
    legs = _legs(turns[index])
    before, after = _legs(turns.get(index - 1, [])), _legs(turns.get(index + 1, []))
    runs = _runs(legs)
    return _TurnSpan(
        runs,
        begin=legs[0].data["time"] if runs & _runs(before) else 0.0,
        end=after[0].data["time"] if runs & _runs(after) else math.inf,
        first=legs[0].data["ref"],
        until=after[0].data["ref"] if after else "",
    )


def _legs(lines: list[TraceLine]) -> list[TraceLine]:
    return [line for line in lines if line.kind == "leg"]


def _runs(legs: list[TraceLine]) -> set[str]:
    return {leg.data["run"] for leg in legs}


def _calls(entries: list[Entry]) -> list[RecordedCall]:
    calls = {
        entry.tool_call_id: RecordedCall(entry.tool_call_id, entry.to, entry.content)
        for entry in entries
        if entry.entry_type == TOOL_CALL
    }
    for entry in entries:
        if entry.entry_type == TOOL_RESULT and entry.tool_call_id in calls:
            calls[entry.tool_call_id].result = entry.content
            calls[entry.tool_call_id].which = str(entry.metadata.get("which", ""))
    return list(calls.values())


def _dispatches(folder: Path, span: _TurnSpan, problems: list[LogProblem]) -> list[JournalLine]:
    return [line for line in read_dispatches(folder, span.runs, problems) if span.covers(line.run, line.time)]
