"""A model that plays a file: for tests, and for people who test their hooks without a provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from cru.core.base.files.regular import read_regular
from cru.core.base.values.messages import CallPart, Delta, End, Request, Text, Thought, Usage
from cru.core.models.encoding import ConversationEncoder, LastValue, PlainNotation, assemble
from cru.core.models.exchange import Sleep
from cru.core.models.failures import ErrorObject, RequestFacts, error_for
from cru.core.models.protocol import BrokenReply, ModelUnavailable, NoModel, RequestBody

_encode = msgspec.json.encode
_TURN = b',"turn":'


class ScriptedModel:
    """See protocol.Model. Which reply is played: the number of assistant messages in the request, plus the tries of this process
    that left no text behind; so a resumed conversation goes on where it was. `by: order` counts requests instead."""

    provider = "scripted"
    tools_by_default = True
    takes_images = True

    def __init__(self, path: Path, *, sleep: Sleep = asyncio.sleep) -> None:
        self.name = str(path)
        self._script = load_script(path)
        self._sleep = sleep
        self._facts = RequestFacts("scripted", self.name)
        self._messages, self._head = ConversationEncoder(PlainNotation(_encode)), LastValue()
        self._failed = 0
        self._order = 0

    def encode(self, request: Request) -> RequestBody:
        """The request as JSON: all but the messages, the messages, and at the end the number of assistant messages."""
        key = (request.model, request.system, request.tools, request.parameters)
        head = self._head.get(key, lambda: _encode_head(request))
        turn = sum(1 for message in request.messages if message.role == "assistant")
        return assemble(head, self._messages.encode(request.messages), b"]%b%d}" % (_TURN, turn))

    async def stream(self, body: RequestBody) -> AsyncGenerator[Delta, None]:
        """Plays the next reply. Raises what its items say, BrokenReply if the script has no more replies."""
        number = self._number(body.parts[-1])
        reply = self._reply(number)
        spoke = whole = False
        try:
            calls = 0
            for item in reply.items:
                if isinstance(item, Text | Thought):
                    spoke = spoke or isinstance(item, Text)
                    yield item
                elif isinstance(item, CallPart):
                    yield CallPart(calls, f"call_{number}_{calls}", item.name, item.arguments)
                    calls += 1
                else:
                    await self._do(item, spoke)
            whole = True
            yield End(reply.end.reason or ("tool_calls" if calls else "stop"), reply.end.usage)
        finally:
            if not whole and not spoke:
                self._failed += 1

    async def close(self) -> None:
        """Nothing is open."""

    def _number(self, closing: bytes) -> int:
        if self._script.by_order:
            self._order += 1
            return self._order - 1
        return int(closing.rpartition(_TURN)[2].rstrip(b"}")) + self._failed

    def _reply(self, number: int) -> ScriptedReply:
        replies = self._script.replies
        if not replies or (number >= len(replies) and not self._script.loop):
            error = BrokenReply(
                f"{self.name}: the script has {len(replies)} replies and reply {number + 1} was asked for",
                "add a reply, or begin the script with `loop: yes`",
            )
            error.retryable = False
            raise error
        return replies[number % len(replies)]

    async def _do(self, item: ScriptedDelay | ScriptedFailure | ScriptedDrop, spoke: bool) -> None:
        match item:
            case ScriptedDelay(seconds):
                await self._sleep(seconds)
            case ScriptedFailure(status, text):
                raise error_for(self._facts, status, ErrorObject(text))
            case ScriptedDrop():
                kind = BrokenReply if spoke else ModelUnavailable
                raise kind(f"{self.name}: the connection was lost, as the script says")


def _encode_head(request: Request) -> bytes:
    head: dict[str, object] = {"model": request.model, "parameters": request.parameters, "system": request.system}
    return _encode({**head, "tools": request.tools})[:-1] + b',"messages":['


class ScriptedDelay(Struct, frozen=True):
    """Wait so many seconds before the next item."""

    seconds: float


class ScriptedFailure(Struct, frozen=True):
    """What a server says instead of a reply.

    status: of HTTP
    text: the body
    """

    status: int
    text: str


class ScriptedDrop(Struct, frozen=True):
    """The connection is lost here."""


Item: TypeAlias = Text | Thought | CallPart | ScriptedDelay | ScriptedFailure | ScriptedDrop


class ScriptedReply(Struct, frozen=True):
    """One reply.

    items: in order; calls get their ids when it is played
    end: the end, unless an item fails before
    """

    items: tuple[Item, ...] = ()
    end: End = End("")


class ModelScript(Struct, frozen=True):
    """A whole script.

    path: its file
    replies: in order
    loop: after the last reply comes the first
    by_order: replies are counted by requests of this process, not by the conversation
    """

    path: str
    replies: tuple[ScriptedReply, ...]
    loop: bool = False
    by_order: bool = False


MOST_BYTES = 64 << 20
COUNTS = ("input", "output", "cache_read", "cache_write", "cost")
ITEMS = ("think", "text", "call", "delay", "usage", "end", "error", "drop", "repeat")
HEADERS = ("loop", "by")


def load_script(path: Path) -> ModelScript:
    """Read a script. Raises NoModel that names file and line."""
    try:
        text = read_regular(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise NoModel(f"cannot read the script {path}: {error}", "name it as scripted:PATH") from error
    return parse_script(text, str(path))


def parse_script(text: str, path: str) -> ModelScript:
    """Replies of a script's text; `path` is only for messages."""
    builder = _Builder(path)
    for number, line in enumerate(text.splitlines(), 1):
        builder.line(number, line)
    return builder.script()


class _Builder:
    def __init__(self, path: str) -> None:
        self._path = path
        self._number = 0
        self._replies: list[ScriptedReply] = []
        self._loop = self._by_order = False
        self._begin()

    def _begin(self) -> None:
        self._items: list[Item] = []
        self._usage, self._end, self._times, self._empty = Usage(), "", 1, True

    def line(self, number: int, line: str) -> None:
        self._number = number
        if not line.strip() or line.startswith("#"):
            return
        if line.rstrip() == "---":
            self._close()
            return
        key, colon, value = line.partition(":")
        if not colon or key not in (*ITEMS, *HEADERS):
            raise self._unknown(key)
        value = value.removeprefix(" ")
        if key in HEADERS:
            self._header(key, value.strip())
            return
        self._empty = False
        if key in ("text", "think"):
            text = _unescape(value)
            self._items.append(Text(text) if key == "text" else Thought(text))
        else:
            self._other(key, value.strip())

    def script(self) -> ModelScript:
        self._close()
        return ModelScript(self._path, tuple(self._replies), self._loop, self._by_order)

    def _close(self) -> None:
        if not self._empty:
            self._replies += [ScriptedReply(tuple(self._items), End(self._end, self._usage))] * self._times
        self._begin()

    def _header(self, key: str, value: str) -> None:
        if self._replies or not self._empty:
            raise self._wrong(f"`{key}:` belongs before the first reply")
        allowed = ("yes", "no") if key == "loop" else ("order", "conversation")
        if value not in allowed:
            raise self._wrong(f"`{key}:` is {' or '.join(allowed)}, not {value!r}")
        if key == "loop":
            self._loop = value == "yes"
        else:
            self._by_order = value == "order"

    def _other(self, key: str, value: str) -> None:
        match key:
            case "call":
                name, _, arguments = value.partition(" ")
                if not name:
                    raise self._wrong("`call:` needs a tool's name")
                self._items.append(CallPart(0, name=name, arguments=arguments.strip() or "{}"))
            case "delay":
                self._items.append(ScriptedDelay(self._seconds(value)))
            case "usage":
                self._usage = self._read_usage(value)
            case "end":
                self._end = value
            case "error":
                self._items.append(self._failure(value))
            case "drop":
                self._items.append(ScriptedDrop())
            case "repeat":
                if not value.isdigit() or value == "0":
                    raise self._wrong(f"`repeat:` needs a count from 1, not {value!r}")
                self._times = int(value)

    def _seconds(self, value: str) -> float:
        for unit, factor in (("ms", 0.001), ("s", 1.0), ("", 1.0)):
            number = value.removesuffix(unit).strip()
            if value.endswith(unit) and number.replace(".", "", 1).isdigit():
                return float(number) * factor
        raise self._wrong(f"`delay:` is like 50ms or 1.5s, not {value!r}")

    def _read_usage(self, value: str) -> Usage:
        fields: dict[str, float] = {}
        for pair in value.split():
            name, _, number = pair.partition("=")
            if name not in COUNTS or not number.replace(".", "", 1).isdigit():
                raise self._wrong(f"`usage:` takes {', '.join(COUNTS)} as name=number, not {pair!r}")
            fields[name] = float(number)
        counted, written, read, cached = (int(fields.get(name, 0)) for name in COUNTS[:-1])
        return Usage(counted, written, read, cached, fields.get("cost"))

    def _failure(self, value: str) -> ScriptedFailure:
        status, _, text = value.partition(" ")
        if not (status.isdigit() and len(status) == 3):
            raise self._wrong(f"`error:` begins with a status such as 429, not {status!r}")
        return ScriptedFailure(int(status), text.strip())

    def _unknown(self, key: str) -> NoModel:
        name = key.strip()
        if name != key and name in (*ITEMS, *HEADERS):
            return self._wrong(f"there is a blank before `{name}:`", "an item begins its line")
        from cru.core.base.config.closest import closest

        near = closest(name, (*ITEMS, *HEADERS))
        return self._wrong(f"unknown item `{name[:40]}`", f"did you mean `{near}:`?" if near else "")

    def _wrong(self, what: str, hint: str = "") -> NoModel:
        return NoModel(
            f"{self._path}:{self._number}: {what}", hint or "the format is described in docs/scripted-model.md"
        )


_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, position = [], 0
    while position < len(text):
        char = text[position]
        after = text[position + 1 : position + 2]
        if char == "\\" and after in _ESCAPES:
            out.append(_ESCAPES[after])
            position += 2
        else:
            out.append(char)
            position += 1
    return "".join(out)
