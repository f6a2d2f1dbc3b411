"""One request to a provider: send, decode, try again if nothing has come yet; and the framing of server-sent events.
Shared by the adapters that speak HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from time import monotonic, time
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec import Struct

from cru.core.base.net import BadUrl, CertificateUntrusted, NetError, Response, TimedOut, UnknownEncoding, split_url
from cru.core.base.values.cancellation import TimeLimit
from cru.core.base.values.messages import CallPart, Delta, Text, Thought
from cru.core.models.failures import (
    MOST_EVENT_BYTES,
    MOST_LINE_BYTES,
    RequestFacts,
    delay_asked_for,
    delay_before_retry,
    error_for_status,
    moved_error,
    too_long,
)
from cru.core.models.protocol import BrokenReply, ModelError, ModelRefused, ModelUnavailable, RequestBody, Say, Sender

if TYPE_CHECKING:
    from cru.core.models.template_rules import TemplateRules

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoders raise; the last for brackets without end."""
_ERROR_BYTES = 65536
_WHOLE_BYTES = 64 << 20
_DRAIN_SECONDS = 0.1
_ERROR_SECONDS = 10.0
_TOO_MANY = 429
_FIELDS = (b"data", b"event", b"id", b"retry", b":")

MOST_CALLS = 1000
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


class ReplyLimits(Struct, frozen=True):
    """What a reply may cost. How long the server may be silent is the transport's affair.

    stall: seconds with nothing but keep-alives
    whole: seconds altogether
    characters: of text, thinking and arguments of calls
    tries: requests altogether
    """

    stall: float = 900.0
    whole: float = 3600.0
    characters: int = 16_000_000
    tries: int = 4


class _ReplyMeter:
    """Measures one reply. `count` and `check` raise BrokenReply at the limits; asking again would bring the same."""

    def __init__(self, limits: ReplyLimits, provider: str, clock: Clock) -> None:
        self._limits, self._provider, self._clock = limits, provider, clock
        self._began = self._progress = clock()
        self._characters = 0
        self._calls = set[int]()

    def count(self, deltas: list[Delta]) -> None:
        if not deltas:
            return
        self._progress = self._clock()
        for delta in deltas:
            if isinstance(delta, Text | Thought):
                self._characters += len(delta.text)
            elif isinstance(delta, CallPart):
                self._characters += 1 + len(delta.arguments)
                self._calls.add(delta.index)
        if len(self._calls) > MOST_CALLS:
            raise self._over(f"the reply has more than {MOST_CALLS:,} calls of tools", "ask again for fewer")
        if self._characters > self._limits.characters:
            raise self._over(
                f"the reply has more than {self._limits.characters:,} characters",
                "`reply_size_limit` sets how many it may have",
            )

    @property
    def seconds_left(self) -> float:
        """Until the next limit, if nothing more comes."""
        return max(min(self._ends()) - self._clock(), 0.0)

    def check(self) -> None:
        """Look at the clock."""
        if self._clock() > min(self._ends()):
            raise self.overdue()

    def overdue(self) -> BrokenReply:
        """The error of the limit that is reached first."""
        stalled, whole = self._ends()
        if stalled <= whole:
            what = f"nothing but keep-alives for {self._limits.stall:g} s"
            return self._over(what, "is the server busy? `stall_timeout` sets how long that may go on")
        what = f"the reply is not whole after {self._limits.whole:g} s"
        return self._over(what, "`reply_timeout` sets how long it may take")

    def _ends(self) -> tuple[float, float]:
        return self._progress + self._limits.stall, self._began + self._limits.whole

    def _over(self, what: str, hint: str) -> BrokenReply:
        return BrokenReply(f"{self._provider}: {what}", hint, retryable=False)


class ReplyReader(Protocol):
    """Reads one reply. `done` is set by the provider's end mark; `end` raises BrokenReply if the reply is not whole."""

    done: bool

    def read(self, data: bytes) -> list[Delta]: ...

    def whole(self, body: bytes) -> list[Delta]: ...

    def end(self) -> list[Delta]: ...


class Exchange:
    """Requests to one endpoint. Several tries on 408, 409, 429, 5xx and lost connections, never after the first delta or after
    silence; `say` hears of each wait, `sleep` does it."""

    def __init__(
        self,
        transport: Sender,
        url: str,
        headers: Mapping[str, str],
        facts: RequestFacts,
        *,
        say: Say,
        limits: ReplyLimits | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = monotonic,
    ) -> None:
        self._transport, self._url, self._headers = transport, url, headers
        self.facts, self._say, self._sleep, self._clock = facts, say, sleep, clock
        self._limits = limits or ReplyLimits()
        self._rules: TemplateRules | None = None

    async def deltas(self, body: RequestBody, reader: Callable[[], ReplyReader]) -> AsyncGenerator[Delta, None]:
        """The reply to one request. Raises ModelError. Close the generator to close the connection."""
        tries, attempt = self._limits.tries, 0
        if self._rules is not None:
            body = self._rules.apply(body)
        while True:
            begun = False
            try:
                async with aclosing(self._try_once(body, reader())) as deltas:
                    async for delta in deltas:
                        begun = True
                        yield delta
                return
            except NetError as error:
                failure = self._connection_error(error, begun)
                cause: Exception = error
            except ModelError as error:
                failure, cause = error, error
                if not begun and (changed := self._mend(body, error)) is not None:
                    body = changed
                    continue
            if begun or not failure.retryable or attempt == tries - 1:
                raise failure from (cause if cause is not failure else cause.__cause__)
            from random import random

            from cru.core.base.values.interruptions import Delayed

            seconds = delay_before_retry(attempt, failure.retry_after, random())
            self._say(f"{failure.message}; trying again in {seconds:.1f} s ({attempt + 2} of {tries})")
            yield Delayed(time() + seconds, failure.status == _TOO_MANY)
            await self._sleep(seconds)
            yield Delayed()
            attempt += 1

    def _mend(self, body: RequestBody, error: ModelError) -> RequestBody | None:
        """Return the request in the form that a refusal asks for, None if it asks for none."""
        from cru.core.models.template_rules import TemplateRules

        self._rules = self._rules or TemplateRules(self.facts.provider, self._say)
        return self._rules.learn(error.message, body)

    def _connection_error(self, error: NetError, begun: bool) -> ModelError:
        if isinstance(error, BadUrl):
            return ModelRefused(self.facts.without_keys(error.message), error.hint)
        kind = BrokenReply if begun else ModelUnavailable
        failure = kind(
            f"{self.facts.provider}: {error.message}", error.hint or f"is {self._url.partition('?')[0]} reachable?"
        )
        failure.retryable = not isinstance(error, TimedOut | CertificateUntrusted | UnknownEncoding)
        return failure

    async def _try_once(self, body: RequestBody, reader: ReplyReader) -> AsyncGenerator[Delta, None]:
        meter = _ReplyMeter(self._limits, self.facts.provider, self._clock)
        response = await self._transport.post_stream(self._url, self._headers, body.parts)
        try:
            if response.status >= 300:
                raise await self._refusal(response, body.size)
            async with aclosing(_read_deltas(response, reader, self._foreign_reply, meter)) as batches:
                async for batch in batches:
                    meter.count(batch)
                    for delta in batch:
                        yield delta
        finally:
            await response.chunks.aclose()
            await response.close()

    def _foreign_reply(self, kind: str) -> ModelError:
        """The error for a good status with something else than a reply: a login page, a proxy, another service."""
        kind = "".join(char for char in kind[:80] if char.isprintable())
        what = f"with {kind}" if kind else "without a content type"
        return BrokenReply(
            f"{self.facts.provider}: {split_url(self._url).authority} answered {what}, which is no model's reply",
            f"does base_url name the right server and path? The request went to {self._url.partition('?')[0]}",
            retryable=False,
        )

    async def _refusal(self, response: Response, size: int) -> ModelError:
        if response.status < 400 and "location" in response.headers:
            return moved_error(self.facts, self._url, response.status, response.headers["location"])
        body = b""
        with suppress(TimeoutError):
            with TimeLimit(_ERROR_SECONDS):
                body = await response.read(_ERROR_BYTES)
        error = error_for_status(self.facts, response.status, body, size)
        error.status = response.status
        error.retry_after = delay_asked_for(response.headers, time())
        return error


async def _read_deltas(
    response: Response, reader: ReplyReader, foreign_reply: Callable[[str], ModelError], meter: _ReplyMeter
) -> AsyncGenerator[list[Delta], None]:
    """The deltas of each chunk. A body that begins with `{` is a whole reply, and one that begins like events is a stream,
    whatever its content type says; anything else of another type is nobody's reply."""
    decoder, first = SseDecoder(), True
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    known = kind == "text/event-stream" or kind.endswith("json")
    while (chunk := await _next_chunk(response, meter)) is not None:
        if first and (start := chunk.lstrip()):
            first = False
            if not known and not _begins_like_a_reply(start):
                raise foreign_reply(kind)
            if start.startswith(b"{"):
                yield reader.whole(chunk + await _read_rest(response, meter))
                yield reader.end()
                return
        for data in decoder.feed(chunk):
            yield reader.read(data)
        meter.check()
        if reader.done:
            await _drain(response)
            yield reader.end()
            return
    if first and kind and not known:
        raise foreign_reply(kind)
    for data in decoder.end():
        yield reader.read(data)
    yield reader.end()


async def _next_chunk(response: Response, meter: _ReplyMeter) -> bytes | None:
    """The next chunk, None behind the last one. Raises what is due when the time is over, whether anything comes or not."""
    try:
        with TimeLimit(meter.seconds_left):
            return await anext(response.chunks, None)
    except TimeoutError as error:
        raise meter.overdue() from error


async def _read_rest(response: Response, meter: _ReplyMeter) -> bytes:
    """The rest of a body, as far as its limit allows."""
    parts: list[bytes] = []
    size = 0
    while (chunk := await _next_chunk(response, meter)) is not None:
        meter.check()
        parts.append(chunk)
        size += len(chunk)
        if size > _WHOLE_BYTES:
            raise too_long("a body", _WHOLE_BYTES)
    return b"".join(parts)


def _begins_like_a_reply(start: bytes) -> bool:
    """Whether a body may be JSON or events; a chunk may end in the middle of a field's name."""
    begins = (b"{", b"\xef\xbb\xbf", *_FIELDS)
    return any(start.startswith(begin) or begin.startswith(start) for begin in begins)


async def _drain(response: Response) -> None:
    """Read what follows the end mark (as a rule nothing), so that the connection can be used again."""
    try:
        with TimeLimit(_DRAIN_SECONDS):
            async for _ in response.chunks:
                pass
    except (TimeoutError, NetError):
        pass  # the reply is whole; only the connection is not kept


Usage = TypeVar("Usage")


def decode_usage(data: bytes, kind: type[Usage]) -> Usage | None:
    """The counts of a reply; None if there are none or they cannot be read: the reply counts all the same."""
    try:
        return msgspec.json.decode(data, type=kind | None, strict=False)
    except NOT_JSON:
        return None


def unfinished_error(facts: RequestFacts) -> BrokenReply:
    return BrokenReply(
        f"{facts.provider}: the reply of {facts.model} ended early", "what came so far is kept; try again"
    )


def unreadable_error(facts: RequestFacts, data: bytes) -> BrokenReply:
    """For a reply that is not what the protocol says; asking again would bring the same."""
    shown = facts.without_keys(data.decode("utf-8", "replace"))[:120]
    message = f"{facts.provider}: cannot understand the reply: {shown!r}"
    return BrokenReply(message, "does base_url name the right server?", retryable=False)


_BOM = b"\xef\xbb\xbf"
_LINE_COST = 48  # bytes of memory that an empty line takes


class SseDecoder:
    """Turns chunks into the data of whole events. Comments (keep-alives), `event:`, `id:` and `retry:` lines are dropped: the
    JSON inside says what it is. Several data lines of one event are joined by a newline. A line of more than 32 MiB and an
    event of more than 256 MiB raise BrokenReply."""

    def __init__(self) -> None:
        self._rest = bytearray()  # a line whose end has not come
        self._data: list[bytes] = []
        self._size = 0  # of the event so far, with what a line costs
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completes."""
        if self._begun and b"\n" not in chunk and b"\r" not in chunk and not self._rest.endswith(b"\r"):
            self._hold(chunk)
            return []
        buffer = bytes(self._rest) + chunk if self._rest else chunk
        if not self._begun:
            if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                self._rest += chunk
                return []
            self._begun, buffer = True, buffer.removeprefix(_BOM)
        held = b""
        if b"\r" in buffer:
            if buffer.endswith(b"\r"):  # its LF may come with the next chunk
                buffer, held = buffer[:-1], b"\r"
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = buffer.split(b"\n")
        self._rest.clear()
        self._hold(lines.pop() + held)
        events: list[bytes] = []
        for line in lines:
            self._line(line, events)
        return events

    def end(self) -> list[bytes]:
        """The stream ended: what a server sent without the blank line at the end."""
        events: list[bytes] = []
        if self._rest:
            self._line(bytes(self._rest).rstrip(b"\r"), events)
            self._rest.clear()
        self._line(b"", events)
        return events

    def _hold(self, piece: bytes) -> None:
        self._rest += piece
        if len(self._rest) > MOST_LINE_BYTES:
            raise too_long("a line", MOST_LINE_BYTES)

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data, self._size = [], 0
            return
        if len(line) > MOST_LINE_BYTES:
            raise too_long("a line", MOST_LINE_BYTES)
        if not line.startswith(b"data:") and line != b"data":
            return
        data = line[5:].removeprefix(b" ")
        self._data.append(data)
        self._size += len(data) + _LINE_COST
        if self._size > MOST_EVENT_BYTES:
            raise too_long("an event", MOST_EVENT_BYTES)
