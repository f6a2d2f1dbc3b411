"""`--json`: one JSON object a line for every event, for programs (docs/json.md). The format is versioned by `v`."""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from cru.engine.turn import LegResult
from cru.events.bus import Bus
from cru.events.catalog import BY_TYPE
from cru.events.stream import EntryLogged, Notice, Published, StateChanged, ToolOutput

VERSION = 1
NAMES: dict[type[msgspec.Struct], str] = {
    Notice: "notice",
    ToolOutput: "tool:output",
    StateChanged: "state:changed",
    EntryLogged: "log:appended",
}


class JsonFace:
    """Writes each line with one write to standard output, at once."""

    def __init__(self) -> None:
        self._encode = msgspec.json.Encoder(enc_hook=repr).encode
        self._gone = False

    def watch(self, bus: Bus) -> None:
        bus.stream.subscribe(self._read)

    def close(self) -> None:
        return None

    def result(self, result: LegResult, code: int) -> None:
        self._write({"v": VERSION, "type": "result", "code": code, "payload": result})

    def say(self, text: str) -> None:
        print(text, file=sys.stderr)

    def _read(self, item: Published) -> None:
        kind = type(item.payload)
        row = BY_TYPE.get(kind)
        line: dict[str, Any] = {
            "v": VERSION,
            "type": row.name if row is not None else NAMES[kind],
            "payload": item.payload,
        }
        if item.stamp is not None:
            line["stamp"] = item.stamp
        if item.answer.decision != "none" or item.answer.note:
            line["answer"] = {"decision": item.answer.decision, "halt": item.answer.halt, "reason": item.answer.reason}
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        if self._gone:
            return
        data = self._encode(line) + b"\n"
        try:
            while data:
                data = data[os.write(1, data) :]
        except BrokenPipeError:
            self._gone = True  # the reader has gone: the turn goes on, and is in the log
