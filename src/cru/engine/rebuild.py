"""Reading the trace: the lines of a turn, and every request as it was sent, to the byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.engine import EngineError
from cru.engine.history import History, visible_at
from cru.engine.recorder import RequestLine
from cru.models.protocol import Model
from cru.values.messages import Entry, Request, Span, ToolSpec

Encoder = Callable[[RequestLine], Model]


class NotInTrace(EngineError):
    pass


class TraceLine(Struct, frozen=True):
    """Any line of the trace: its kind, its turn, and all its fields."""

    kind: str
    turn: str
    data: dict[str, Any]


def read_trace(path: Path) -> tuple[list[TraceLine], list[str]]:
    """All lines, and what is wrong with those that cannot be read (torn by a kill)."""
    lines: list[TraceLine] = []
    problems: list[str] = []
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return lines, problems
    for number, raw in enumerate(data.splitlines(), 1):
        if not raw.strip():
            continue
        try:
            line = msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.DecodeError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        lines.append(TraceLine(line.pop("k", ""), line.get("turn", ""), line))
    return lines, problems


def group_by_turn(lines: Iterable[TraceLine]) -> list[list[TraceLine]]:
    """Lines by turn, the oldest turn first."""
    by_turn: dict[str, list[TraceLine]] = {}
    for line in lines:
        by_turn.setdefault(line.turn, []).append(line)
    return list(by_turn.values())


def request_line(turn: Iterable[TraceLine], number: int) -> RequestLine:
    """The recipe of the turn's nth request; raises NotInTrace."""
    requests = [line for line in turn if line.kind == "request"]
    for line in requests:
        if line.data["n"] == number:
            return msgspec.convert({**line.data, "k": "request"}, RequestLine)
    raise NotInTrace(f"there is no request {number} in this turn", f"it has {len(requests)}")


def rebuild_request(line: RequestLine, entries: Iterable[Entry], folder: Path) -> Request:
    """The request of a recipe, from the log and the stored spans. `entries` is everything that was ever logged."""
    spans = tuple(Span(name, origin, _stored(folder, key).decode()) for name, origin, key in line.spans)
    tools = msgspec.json.decode(_stored(folder, line.tools), type=tuple[ToolSpec, ...]) if line.tools else ()
    messages = line.messages
    if messages is None:
        messages = History(visible_at(list(entries), line.upto)).messages()
    return Request(line.model, spans, messages, tools, line.parameters)


def encode_request(line: RequestLine, request: Request, model: Model) -> tuple[bytes, bool]:
    """The bytes of a request, and whether they are the ones that were sent (same SHA-256)."""
    data = model.encode(request).join()
    return data, hashlib.sha256(data).hexdigest() == line.sha


def _stored(folder: Path, key: str) -> bytes:
    try:
        return (folder / "spans" / key).read_bytes()
    except FileNotFoundError as error:
        raise NotInTrace(
            f"the text {key} of this request is gone", "the context's spans/ folder was changed"
        ) from error
