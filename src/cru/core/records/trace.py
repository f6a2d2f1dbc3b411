"""Reading the trace and the journal over all their files: which turns there are, the lines of one, and the dispatches of a run, the newest
first. Only what is asked for is decoded and kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.conversations.entries import BROKEN, LogProblem, line_key, short_error
from cru.core.conversations.record_files import RecordFiles
from cru.core.events.journal import JournalLine
from cru.core.records.requests import NotInTrace, TraceLine, decode_trace_line

FILE = "trace.jsonl"
# How the recorder writes the beginning of each line: what begins a turn can be found without decoding, or looking at, the rest.
_LINE, _LEG, _REQUEST = b'{"k":"', b'{"k":"leg","v":1,"turn":"', b'{"k":"request",'
_OUTSIDE = b'{"k":"request","n":1,"turn":"",'
_TURN = b'"turn":"'
_LONGEST_ID = 200


class TurnPlace(Struct):
    """Where a turn begins in the trace.

    turn: its id; "": what was asked of a model outside of any (`cru -z`)
    start: an offset, see RecordFiles
    """

    turn: str
    start: int


class RecordedTrace:
    """The trace of the context in `folder`, open until the block ends. Entering raises StoreUnreadable.

    turns: in order, the oldest first; what was asked of a model outside of any stands between them
    problems: what is wrong with lines that cannot be read (torn by a kill)
    """

    def __init__(self, folder: Path) -> None:
        self._files = RecordFiles(folder / FILE)
        self.turns: list[TurnPlace] = []
        self.problems: list[LogProblem] = []

    def __enter__(self) -> RecordedTrace:
        self._files.__enter__()
        try:
            self._find_turns()
        except BaseException:  # whatever it is, Ctrl-C too: the files are closed, and it is raised again
            self._files.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._files.__exit__()

    def lines(self, place: TurnPlace) -> list[TraceLine]:
        """The lines of a turn."""
        outside = (other.start for other in self.turns if not other.turn and other.start > place.start)
        end = None if place.turn else next(outside, None)
        mark = b'%s%s"' % (_TURN, place.turn.encode())
        decoded = [self._decoded(line, at) for at, line in self._lines_with(mark, place.start, end)]
        return [line for line in decoded if line is not None and line.turn == place.turn]

    def turns_with_requests(self) -> list[int]:
        """The places in `turns` of those that asked a model."""
        requests = (_decode(line) for _, line in self._lines_with(_REQUEST, 0, None))
        asked = {line.turn for line in requests if line is not None}
        return [at for at, place in enumerate(self.turns) if place.turn in asked]

    def _lines_with(self, mark: bytes, start: int, end: int | None) -> Iterator[tuple[int, bytes]]:
        """Each with the offset behind it."""
        for at, block in self._files.blocks(start, end):
            if mark in block:
                for line in block.split(b"\n"):
                    at += len(line) + 1
                    if mark in line:
                        yield at, line

    def _decoded(self, line: bytes, at: int) -> TraceLine | None:
        """None if it cannot be read, which is a problem; `at` is the offset behind it."""
        try:
            return decode_trace_line(line)
        except BROKEN as error:
            path, number = self._files.place(at)
            problem = LogProblem(path.name, number, f"{short_error(error)} (skipped)", line_key(line))
            if problem not in self.problems:
                self.problems.append(problem)
            return None

    def _find_turns(self) -> None:
        known: set[str] = set()
        for start, block in self._files.blocks():
            places = [TurnPlace("", start + at) for at in _begins(block, _OUTSIDE)]
            legs = ((_turn_at(block, at + len(_LEG)), at) for at in _begins(block, _LEG))
            places += [TurnPlace(turn, start + at) for turn, at in legs if turn and self._begins_turn(start, block, at)]
            if not _is_whole(block):
                self._check_lines(start, block)
            for place in sorted(places, key=lambda place: place.start):
                if not place.turn or place.turn not in known:
                    known.add(place.turn)
                    self.turns.append(place)

    def _check_lines(self, start: int, block: bytes) -> None:
        """Find the lines of a block that cannot be read."""
        for line in block.split(b"\n"):
            start += len(line) + 1
            if not line.strip():
                continue
            self._decoded(line, start)

    def _begins_turn(self, start: int, block: bytes, at: int) -> bool:
        """Whether the line at this place of a block can be read."""
        line = block[at : block.find(b"\n", at) % (len(block) + 1)]
        return self._decoded(line, start + at + len(line) + 1) is not None


def pick_turn(turns: Sequence[TurnPlace], number: int) -> int:
    """The place of a turn in the list: the first is 1, the last -1. Raises NotInTrace."""
    at = number - 1 if number > 0 else len(turns) + number
    if number == 0 or not 0 <= at < len(turns):
        raise NotInTrace(f"there is no turn {number}", f"{len(turns)} are recorded, the oldest is 1, the last -1")
    return at


def last_request(folder: Path) -> TraceLine | None:
    """The newest request of a turn; None if there is none."""
    with RecordFiles(folder / FILE) as files:
        requests = (_decode(line) for line in files.backward() if line.startswith(_REQUEST))
        return next((line for line in requests if line is not None and not line.data.get("purpose")), None)


def _is_whole(block: bytes) -> bool:
    """Whether each line begins and ends as the recorder writes it."""
    joints = block.count(b"}\n" + _LINE)
    return block.startswith(_LINE) and block.endswith(b"}\n") and block.count(b"\n") == joints + 1


def _begins(block: bytes, mark: bytes) -> Iterator[int]:
    """Where lines begin with this."""
    if block.startswith(mark):
        yield 0
    mark = b"\n" + mark
    at = block.find(mark)
    while at >= 0:
        yield at + 1
        at = block.find(mark, at + 1)


def _turn_at(block: bytes, start: int) -> str:
    """The id of a turn that stands there, "" if it is torn."""
    turn, quote, _ = block[start : start + _LONGEST_ID].partition(b'"')
    return "" if not quote or b"\n" in turn else turn.decode("utf-8", "replace")


def _decode(line: bytes) -> TraceLine | None:
    try:
        return decode_trace_line(line)
    except BROKEN:
        return None  # it is among the problems


JOURNAL = "journal.jsonl"


def read_dispatches(folder: Path, runs: Collection[str], problems: list[LogProblem]) -> Iterator[JournalLine]:
    """Yield the dispatches of these runs from the journal in this context's folder. Adds lines that are none to `problems`. Raises
    StoreUnreadable."""
    decoder = msgspec.json.Decoder(JournalLine)
    names = [run.encode() for run in runs]
    with RecordFiles(folder / JOURNAL) as files:
        for place, line in files.backward_with_places():
            is_whole = line.startswith(b'{"') and line.endswith(b"}")
            if is_whole and not any(name in line for name in names):
                continue
            try:
                dispatch = decoder.decode(line) if line.strip() else None
            except BROKEN as error:
                path, number = files.line_number(place)
                problems.append(LogProblem(path.name, number, f"{short_error(error)} (skipped)", line_key(line)))
                continue
            if dispatch is not None and dispatch.run in runs:
                yield dispatch
