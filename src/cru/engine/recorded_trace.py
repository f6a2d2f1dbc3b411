"""Reading the trace over all its files: which turns there are, and the lines of one. Only what is asked for is decoded and kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.contexts.entries import LogProblem, line_key
from cru.contexts.record_files import RecordFiles
from cru.engine.rebuild import NotInTrace, TraceLine

FILE = "trace.jsonl"
# How the recorder writes the beginning of each line: what tells turns apart can be read without decoding the rest.
_HEAD = re.compile(rb'\{"k":"(\w+)",(?:"v":\d+,)?(?:"n":(\d+),)?"turn":"([^"\\]*)"')


class TurnPlace(Struct):
    """Where the lines of a turn stand in the trace.

    turn: its id; "": what was asked of a model outside of any (`cru -z`)
    start, end: offsets, see RecordFiles
    legs, requests: how many
    """

    turn: str
    start: int
    end: int
    legs: int = 0
    requests: int = 0


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
        except BaseException:
            self._files.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._files.__exit__()

    def lines(self, place: TurnPlace) -> list[TraceLine]:
        """The lines of a turn."""
        inside = self._files.forward(place.start, place.end)
        read = (_decode(line) for _, line in inside if _turn_of(line) in (place.turn, None))
        return [line for line in read if line is not None and line.turn == place.turn]

    def _find_turns(self) -> None:
        places: dict[str, TurnPlace] = {}
        outside = start = 0
        for end, line in self._files.forward():
            head = self._read_head(line, end)
            if head is not None:
                kind, number, turn = head
                outside += kind == "request" and number == 1 and not turn
                key = turn or f"#{outside}"
                place = places.get(key)
                if place is None:
                    place = places[key] = TurnPlace(turn, start, end)
                place.end = end
                place.legs += kind == "leg"
                place.requests += kind == "request"
            start = end
        self.turns = list(places.values())

    def _read_head(self, line: bytes, end: int) -> tuple[str, int, str] | None:
        """Kind, number and turn of a line; None if it is none."""
        head = _HEAD.match(line)
        if head is not None and line.endswith(b"}"):
            return head[1].decode(), int(head[2] or 0), head[3].decode("utf-8", "replace")
        if not line.strip():
            return None
        try:
            whole = _decode_or_raise(line)
        except msgspec.DecodeError as error:
            place = self._files.place(end)
            self.problems.append(LogProblem(place[0].name, place[1], f"{error} (skipped)", line_key(line)))
            return None
        return whole.kind, whole.data.get("n", 0), whole.turn


def pick_turn(turns: Sequence[TurnPlace], number: int) -> int:
    """The place of a turn in the list: the first is 1, the last -1. Raises NotInTrace."""
    at = number - 1 if number > 0 else len(turns) + number
    if number == 0 or not 0 <= at < len(turns):
        raise NotInTrace(f"there is no turn {number}", f"{len(turns)} are recorded, the oldest is 1, the last -1")
    return at


def last_request(folder: Path) -> TraceLine | None:
    """The newest request of a turn; None if there is none."""
    with RecordFiles(folder / FILE) as files:
        requests = (_decode(line) for line in files.backward() if line.startswith(b'{"k":"request"'))
        return next((line for line in requests if line is not None and not line.data.get("purpose")), None)


def _turn_of(line: bytes) -> str | None:
    head = _HEAD.match(line)
    return None if head is None else head[3].decode("utf-8", "replace")


def _decode(line: bytes) -> TraceLine | None:
    try:
        return _decode_or_raise(line)
    except msgspec.DecodeError:
        return None  # it is among the problems


def _decode_or_raise(line: bytes) -> TraceLine:
    data = msgspec.json.decode(line, type=dict[str, Any])
    return TraceLine(data.pop("k", ""), data.get("turn", ""), data)
