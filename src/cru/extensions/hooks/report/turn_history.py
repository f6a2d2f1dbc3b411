"""One turn as its records tell it: what was called, which events were dispatched to whom, what hooks did."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.contexts.store import FileContext
from cru.engine import rebuild
from cru.engine.rebuild import NotInTrace, TraceLine
from cru.events.journal import JournalLine
from cru.extensions.hooks import records
from cru.extensions.hooks.records import FiringRecord, LoadRecord
from cru.values.entries import TOOL_CALL, TOOL_RESULT, Entry


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

    def firing(self, line: JournalLine, id: str) -> FiringRecord | None:
        """What an entry did in a dispatch; None if it did not fire."""
        place = (line.run, line.seq, id)
        return next((one for one in reversed(self.firings) if (one.run, one.seq, one.id) == place), None)


def read_turn(store: FileContext, number: int = -1) -> RecordedTurn | None:
    """A recorded turn, the first one is 1, the last one -1; None if there are none. Raises NotInTrace."""
    lines, _ = rebuild.read_trace(store.folder / "trace.jsonl")
    turns = [
        one
        for one in rebuild.group_by_turn(line for line in lines if line.turn)
        if any(line.kind == "leg" for line in one)
    ]
    if not turns:
        return None
    at = number - 1 if number > 0 else len(turns) + number
    if number == 0 or not 0 <= at < len(turns):
        raise NotInTrace(f"there is no turn {number}", f"{len(turns)} are recorded, the oldest is 1, the last -1")
    mine, before, after = turns[at], turns[at - 1 : at] if at else [], turns[at + 1 : at + 2]
    runs = {line.data["run"] for line in _legs(mine)}
    begin = _legs(mine)[0].data["time"] if before and runs & _runs(before[0]) else 0.0
    end = _legs(after[0])[0].data["time"] if after and runs & _runs(after[0]) else math.inf
    return _filled(
        store, mine, (at + 1, len(turns)), runs, (begin, end), _legs(after[0])[0].data["ref"] if after else ""
    )


def _filled(
    store: FileContext,
    mine: list[TraceLine],
    place: tuple[int, int],
    runs: set[str],
    span: tuple[float, float],
    until: str,
) -> RecordedTurn:
    begin, end = span
    first = _legs(mine)[0].data
    ends = [line.data for line in mine if line.kind == "end"]
    counts: Counter[str] = Counter()
    for one in ends:
        counts.update(one["counts"])
    said = _between(list(store.everything()), first["ref"], until)
    recorded = [line for line in records.read_lines(store.folder) if line.run in runs]
    return RecordedTurn(
        number=place[0], last=place[1], prompt=next((one.content for one in said if one.id == first["ref"]), ""),
        source=first["source"], began=first["time"], cause=ends[-1]["cause"] if ends else "", counts=dict(counts),
        calls=_calls(said), dispatches=sorted(_dispatches(store.folder, runs, begin, end), key=lambda line: line.seq),
        firings=[line for line in reversed(recorded) if isinstance(line, FiringRecord) and begin <= line.time < end],
        load=next((line for line in recorded if isinstance(line, LoadRecord) and line.time < end), None),
    )  # fmt: skip


def _legs(lines: list[TraceLine]) -> list[TraceLine]:
    return [line for line in lines if line.kind == "leg"]


def _runs(lines: list[TraceLine]) -> set[str]:
    return {line.data["run"] for line in _legs(lines)}


def _between(entries: list[Entry], first: str, until: str) -> list[Entry]:
    """The log from one prompt to another; to the end if there is none."""
    ids = [entry.id for entry in entries]
    begin = ids.index(first) if first in ids else len(ids)
    return entries[begin : ids.index(until) if until in ids[begin:] else len(ids)]


def _calls(entries: list[Entry]) -> list[RecordedCall]:
    made = {
        one.tool_call_id: RecordedCall(one.tool_call_id, one.to, one.content)
        for one in entries
        if one.entry_type == TOOL_CALL
    }
    for one in entries:
        if one.entry_type == TOOL_RESULT and one.tool_call_id in made:
            made[one.tool_call_id].result = one.content
            made[one.tool_call_id].which = str(one.metadata.get("which", ""))
    return list(made.values())


def _dispatches(folder: Path, runs: set[str], begin: float, end: float) -> Iterator[JournalLine]:
    decoder = msgspec.json.Decoder(JournalLine)
    names = [run.encode() for run in runs]
    for raw in records.newest_first(folder, "journal.jsonl"):
        if not any(name in raw for name in names):
            continue
        try:
            line = decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeError):
            continue  # torn by a kill
        if line.run in runs and begin <= line.time < end:
            yield line
