"""`--json`: one JSON object a line for every event, for programs (docs/json.md). The format is versioned by `v`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from cru.core.base.values.interruptions import CallInterrupted, Delayed
from cru.core.base.values.messages import CallPart
from cru.core.events.bus import Bus
from cru.core.events.catalog import BY_TYPE
from cru.core.events.payloads import ToolCalled
from cru.core.events.stream import (
    AgentActivity,
    AgentCallFailed,
    CommandSaid,
    EntryLogged,
    FactPublished,
    Notice,
    Published,
    ReplyDropped,
    StateChanged,
    StatusChanged,
    ToolDrew,
    ToolOutput,
)
from cru.core.turn.turn import Cause, LegResult
from cru.faces.cli.console import ExitStatus, TerminalOutput, say

if TYPE_CHECKING:
    from cru.core.compose import FaceSettings
    from cru.core.turn.parts import Parts

VERSION = 1
# Types of lines that are no events of the catalog.
NAMES: dict[type[msgspec.Struct], str] = {
    Notice: "notice",
    ToolOutput: "tool:output",
    ToolDrew: "tool:drew",
    ReplyDropped: "reply:dropped",
    CommandSaid: "command",
    StatusChanged: "status:changed",
    FactPublished: "fact:published",
    StateChanged: "state:changed",
    CallPart: "call:begun",
    CallInterrupted: "call:interrupted",
    Delayed: "request:delayed",
    AgentActivity: "agent:activity",
    AgentCallFailed: "agent:call_failed",
    EntryLogged: "log:appended",
}
OUTPUT, RESULT = "output", "result"
MOST_OUTPUT = 10 * 1024 * 1024
"""Characters of one call's output as it comes: as many as its result keeps."""
CUT = "\n[... cut here: more than {limit:,} characters; the result has the first and the last half of as many ...]\n"


class JsonFace:
    """Writes each line with one write to standard output, at once.

    last: how this process' last run ended
    tells_failures, tells_cost: as the text face has it; a program reads everything
    """

    last: ClassVar[LegResult | None] = None
    tells_failures = True
    tells_cost = True

    def __init__(self) -> None:
        self._encode = msgspec.json.Encoder(enc_hook=repr).encode
        self._output = TerminalOutput()
        self._room: dict[str, int] = {}

    @property
    def problem(self) -> str:
        """Why standard output could not be written, "" if it could."""
        return self._output.problem

    def watch(self, bus: Bus) -> None:
        bus.stream.subscribe(self._read)

    def dress(self, look: FaceSettings, parts: Parts) -> None:
        """A program reads everything."""

    def close(self) -> None:
        return None

    def result(self, result: LegResult, code: int, resume: str = "") -> None:
        """The last line. `resume` is the command that goes on with an unfinished turn."""
        JsonFace.last = result
        self._write({"v": VERSION, "type": RESULT, "code": code, "resume": resume, "payload": result})

    def failed(self, message: str, hint: str, code: int) -> None:
        """The last line of a run that came to no turn, or whose turn could not be ended."""
        cause: Cause = "interrupted" if code > 128 else "error"
        self.result(LegResult(cause, reason=message, error=message, hint=hint, code=code), code)

    def output(self, text: str) -> None:
        """What a flag such as -L prints."""
        self._write({"v": VERSION, "type": OUTPUT, "payload": {"text": text}})

    def say(self, text: str) -> None:
        say(text)

    def _read(self, item: Published) -> None:
        payload: Any = item.payload
        if isinstance(payload, ToolOutput):
            payload = self._bounded(payload)
            if payload is None:
                return
        elif isinstance(payload, ToolCalled):
            self._room.pop(payload.call_id, None)  # providers may use an id again
        kind = type(payload)
        row = BY_TYPE.get(kind)
        line: dict[str, Any] = {
            "v": VERSION,
            "type": row.name if row is not None else NAMES[kind],
            "payload": payload,
        }
        if item.stamp is not None:
            line["stamp"] = item.stamp
        if item.answer.decision != "none" or item.answer.halt or item.answer.note:
            line["answer"] = {"decision": item.answer.decision, "halt": item.answer.halt, "reason": item.answer.reason}
        if item.answer.outcome is not None:
            line["outcome"] = item.answer.outcome
        self._write(line)

    def _bounded(self, piece: ToolOutput) -> ToolOutput | None:
        """The piece, or what of it is still within bounds; None for what comes after the cut."""
        room = self._room.get(piece.call_id, MOST_OUTPUT)
        self._room[piece.call_id] = room - len(piece.text)
        if room < 0:
            return None
        if len(piece.text) <= room:
            return piece
        return ToolOutput(piece.call_id, piece.text[:room] + CUT.format(limit=MOST_OUTPUT))

    def _write(self, line: dict[str, Any]) -> None:
        self._output.write(self._encode(line) + b"\n")


# Classes of errors, by name so that none of their modules is loaded, and exit statuses → chibi's words. The rest is internal_error.
BY_ERROR = {
    "NoSuchContext": "not_found", "FileNotFoundError": "not_found", "NameTaken": "already_exists", "FileExistsError": "already_exists",
    "NotConfirmed": "permission_denied", "PermissionError": "permission_denied", "ConfigError": "invalid_data",
    "StoreUnreadable": "invalid_data", "MigrationFailed": "invalid_data",
}  # fmt: skip
GIVEN_UP = ("gave_up", "out_of_budget", "needs_person")
"""Outcomes that are words of their own there; chibi has none for them."""
BY_CODE = {
    ExitStatus.USAGE: "invalid_input",
    ExitStatus.DENIED: "permission_denied",
    ExitStatus.NO_MODEL: "not_found",
}


def report_outcome(code: int, error: BaseException | None) -> None:
    """Write the last line of a `--json-config` run to standard error: {"type": "done", "ok"}, after a failure "code", "message" too."""
    line: dict[str, object] = {"type": "done", "ok": code == ExitStatus.DONE}
    if code:
        names = [kind.__name__ for kind in type(error).__mro__]
        word = next((BY_ERROR[name] for name in names if name in BY_ERROR), BY_CODE.get(code, "internal_error"))
        result = JsonFace.last
        if result is not None and result.outcome.kind in GIVEN_UP:
            word = result.outcome.kind
        reason = (result.error or result.reason) if result is not None else ""
        line |= {"code": word, "message": getattr(error, "message", "") or reason or f"exit status {code}"}
    try:
        os.write(2, msgspec.json.encode(line) + b"\n")
    except OSError:
        pass  # nobody can be told
