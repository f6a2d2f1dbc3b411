"""What a scripted server does with one request. A script is a list of steps, one for each request, or one function for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from cru.core.base.values.messages import Usage


class Received(Struct, frozen=True):
    """One request as it arrived. Header names are lower case; `body` is the parsed JSON (None if it is none); `began` and `time`
    are monotonic seconds of its first and of its last byte."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes
    began: float
    time: float


class Call(Struct, frozen=True):
    """A tool call that the model asks for. `args` as a string is sent as it is (for invalid JSON); without `id` it is
    call_<number of the request>_<number of the call>."""

    name: str
    args: dict[str, Any] | str = {}
    id: str = ""


class Reply(Struct, frozen=True):
    """An answer. It streams if the request asks for it, unless `json`.

    pieces: characters a delta (0 = the text in one delta)    split: bytes a network write (0 = all in one)
    delay: seconds before the first byte                      gap: seconds between two writes
    message: one chunk with a whole `message`, no deltas      json: one JSON document although a stream was asked for
    error: after the text an error event, and no end          reason: overrides stop / tool_calls
    """

    text: str = ""
    calls: Sequence[Call] = ()
    think: str = ""
    pieces: int = 0
    split: int = 0
    delay: float = 0.0
    gap: float = 0.0
    message: bool = False
    json: bool = False
    error: str = ""
    reason: str = ""
    usage: Usage = Usage(input=100, output=10)


class Status(Struct, frozen=True):
    """An HTTP error. A string as `body` becomes the message of an OpenAI-style error object."""

    code: int
    headers: Mapping[str, str] = {}
    body: str | bytes = "scripted failure"


class Drop(Struct, frozen=True):
    """The connection is lost: `before` any byte of the answer, or after that many bytes of the reply's body."""

    after_bytes: int = 0
    before: bool = False
    reply: Reply = Reply("a reply that never ends")


class Hang(Struct, frozen=True):
    """The answer never ends; `text` is streamed first. Lasts until the client goes away or the server closes."""

    text: str = ""


class Raw(Struct, frozen=True):
    """These bytes, status line included, then the connection is closed."""

    data: bytes
    split: int = 0


Step: TypeAlias = Reply | Status | Drop | Hang | Raw
Rule: TypeAlias = Callable[[Received], Step]
Script: TypeAlias = Sequence[Step | Rule] | Rule
