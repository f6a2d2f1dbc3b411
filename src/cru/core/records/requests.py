"""Every request of the trace as it was sent, to the byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.values.messages import Entry, Request, Span, ToolSpec
from cru.core.models.protocol import Model
from cru.core.turn import EngineError
from cru.core.turn.history import History, visible_at
from cru.core.turn.recorder import RequestLine, Wait

Encoder = Callable[[RequestLine], Model]


class NotInTrace(EngineError):
    pass


class TraceLine(Struct, frozen=True):
    """Any line of the trace: its kind, its turn, and all its fields."""

    kind: str
    turn: str
    data: dict[str, Any]


class _LegFields(Struct):
    turn: str
    ref: str
    source: str
    run: str
    time: float


class _StatesFields(Struct):
    turn: str
    at: list[tuple[str, float]]


class _WaitsFields(Struct):
    turn: str
    at: list[Wait]


class _UsageFields(Struct):
    input: int
    cache_read: int
    output: int


class _ReplyFields(Struct):
    n: int
    turn: str
    time: float
    ms: float
    usage: _UsageFields
    reason: str
    error: str


class _FallbackFields(Struct):
    n: int
    turn: str
    time: float
    failed: str
    why: str
    next: str


class _EndFields(Struct):
    turn: str
    time: float
    cause: str
    error: str
    counts: dict[str, int]


_KINDS: dict[object, type[Struct]] = {
    "leg": _LegFields, "states": _StatesFields, "waits": _WaitsFields, "request": RequestLine, "reply": _ReplyFields,
    "fallback": _FallbackFields, "end": _EndFields,
}  # fmt: skip
"""What a line of each kind has at least."""


def decode_trace_line(line: bytes) -> TraceLine:
    """A line as the recorder wrote it. Raises one of BROKEN."""
    data = msgspec.json.decode(line, type=dict[str, Any])
    kind = data.get("k")
    if kind in _KINDS:
        msgspec.convert(data, _KINDS[kind])
    return TraceLine(str(data.pop("k", "")), str(data.get("turn", "")), data)


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
        messages = History(visible_at(entries, line.upto)).messages()
    request = Request(line.model, spans, messages, tools, line.parameters)
    if not any(message.images for message in messages):
        return request
    from cru.core.turn.images import loader

    return msgspec.structs.replace(request, load_image=loader(folder))


def encode_request(line: RequestLine, request: Request, model: Model) -> tuple[bytes, bool]:
    """The bytes of a request, and whether they are the ones that were sent (same SHA-256)."""
    data = model.encode(request).join()
    return data, hashlib.sha256(data).hexdigest() == line.sha


def _stored(folder: Path, key: str) -> bytes:
    try:
        return (folder / "spans" / key).read_bytes()
    except FileNotFoundError as error:
        raise NotInTrace(
            f"the text {key} of this request is gone",
            "texts go with the oldest records (settings record_file_mb, record_files, record_max_age_days)",
        ) from error
