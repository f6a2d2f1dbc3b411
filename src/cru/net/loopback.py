"""HTTP/1.1 to servers on this machine, over asyncio streams: no TLS, no proxies, nothing to load.

Local model servers send their first byte only when the prompt is processed, and a cancelled request must stop that work, so
the connection has to close at once. The library that speaks to remote servers does that only after the answer has begun
(docs/decisions/0001-http-client.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from cru.net import BadUrl, ConnectFailed, ConnectionLost, Response, TimedOut, Url

_CHUNK = 65536
_IDLE_KEPT = 4  # idle connections kept for each server


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def is_usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())


class LoopbackClient:
    """Connections to local servers, kept open between requests. Belongs to the event loop that first uses it."""

    def __init__(self, connect_timeout: float, idle_timeout: float) -> None:
        self._connect_timeout, self._idle_timeout = connect_timeout, idle_timeout
        self._idle: dict[tuple[str, int], list[_Connection]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, method: str, url: Url, headers: Mapping[str, str], body: bytes) -> Response:
        """Send one request and wait for the head of its answer. Raises ConnectFailed, ConnectionLost, TimedOut."""
        data = encode_request(method, url, headers, body)
        for connection in self._take_idle(url):
            try:  # the server may have closed a kept connection just now: then nothing was answered, so send it again
                return await self._exchange(connection, method, url, data)
            except ConnectionLost:
                continue
        return await self._exchange(await self._connect(url), method, url, data)

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.writer.close()
        self._idle.clear()

    def _take_idle(self, url: Url) -> list[_Connection]:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._idle = loop, {}
        kept = self._idle.get((url.host, url.port), [])
        while kept:
            connection = kept.pop()
            if connection.is_usable():
                return [connection]
            connection.writer.close()
        return []

    async def _connect(self, url: Url) -> _Connection:
        where = f"{url.host}:{url.port}"
        try:
            async with asyncio.timeout(self._connect_timeout):
                return _Connection(*await asyncio.open_connection(url.host, url.port))
        except TimeoutError as error:
            raise ConnectFailed(f"no connection to {where} within {self._connect_timeout:g} s") from error
        except OSError as error:
            raise ConnectFailed(
                f"no connection to {where}: {error.strerror or error}", "is the server running?"
            ) from error

    async def _exchange(self, connection: _Connection, method: str, url: Url, data: bytes) -> Response:
        try:
            connection.writer.write(data)
            status, headers = await self._head(connection)
        except BaseException:  # also when cancelled: the server must see that nobody waits any more
            connection.writer.close()
            raise
        body = BodyDecoder(status, headers, method)
        keep = headers.get("connection", "").lower() != "close"

        async def close() -> None:
            if body.done and keep and not body.leftover and connection.is_usable():
                kept = self._idle.setdefault((url.host, url.port), [])
                if len(kept) < _IDLE_KEPT and connection not in kept:
                    kept.append(connection)
                    return
            connection.writer.close()

        return Response(status, headers, self._chunks(connection, body), close)

    async def _head(self, connection: _Connection) -> tuple[int, dict[str, str]]:
        while True:
            try:
                async with asyncio.timeout(self._idle_timeout):
                    head = await connection.reader.readuntil(b"\r\n\r\n")
            except TimeoutError as error:
                raise TimedOut(f"the server sent nothing for {self._idle_timeout:g} s") from error
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
                raise ConnectionLost("the connection broke before the answer") from error
            status, headers = parse_head(head[:-4])
            if status >= 200:
                return status, headers

    async def _chunks(self, connection: _Connection, body: BodyDecoder) -> AsyncGenerator[bytes, None]:
        while not body.done:
            try:
                async with asyncio.timeout(self._idle_timeout):
                    data = await connection.reader.read(_CHUNK)
            except TimeoutError as error:
                raise TimedOut(f"the server sent nothing for {self._idle_timeout:g} s") from error
            except OSError as error:
                raise ConnectionLost("the connection broke in the middle of the answer") from error
            if not data:
                body.end()
                return
            if payload := body.feed(data):
                yield payload


_HEX = frozenset(b"0123456789abcdefABCDEF")


def encode_request(method: str, url: Url, headers: Mapping[str, str], body: bytes) -> bytes:
    """A whole request. Line breaks in header values are refused (they would start a new header)."""
    lines = [f"{method} {url.target} HTTP/1.1", f"host: {url.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"content-length: {len(body)}")
    if any("\r" in line or "\n" in line for line in lines):
        raise BadUrl("a request header holds a line break", "check the key and base_url settings for stray newlines")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers (names in lower case, the last of equal names wins) of `HTTP/1.1 200 OK…` up to the blank line."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isdecimal() and len(words[1]) == 3):
        raise ConnectionLost(f"the server does not speak HTTP: {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return int(words[1]), headers


class BodyDecoder:
    """Takes the framing off a body: chunked, of a given length, or up to the end of the connection.

    `feed` returns payload; `done` says that the body is whole; `leftover` that bytes came after it."""

    def __init__(self, status: int, headers: Mapping[str, str], method: str = "") -> None:
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length", "")
        counted = length.isdecimal() and len(length) < 20  # not isdigit: int() takes no "²", nor a number without end
        self._until_end = not self._chunked and not counted
        self._left = int(length) if counted and not self._chunked else 0
        self._buffer = b""
        self._in_trailer = False
        self.done = (
            method == "HEAD" or status in (204, 304) or (not self._chunked and not self._until_end and self._left == 0)
        )
        self.leftover = False

    def feed(self, data: bytes) -> bytes:
        """Payload bytes in `data`, the raw bytes that came next."""
        if self._chunked:
            return self._decode_chunks(data)
        if self._until_end:
            return data
        payload, rest = data[: self._left], data[self._left :]
        self._left -= len(payload)
        self.done, self.leftover = self._left == 0, bool(rest)
        return payload

    def end(self) -> None:
        """The connection ended. Raises ConnectionLost if something is missing."""
        if self._until_end:
            self.done = True
        if not self.done:
            raise ConnectionLost("the connection broke in the middle of the answer")

    def _decode_chunks(self, data: bytes) -> bytes:
        buffer, out = self._buffer + data, []
        position = 0
        while not self.done:
            if self._left:  # inside a chunk: its bytes and the line break after them
                piece = buffer[position : position + self._left]
                out.append(piece[: max(0, self._left - 2)])
                position += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
                continue
            line_end = buffer.find(b"\n", position)
            if line_end < 0:
                break
            self._read_size_line(buffer[position:line_end].strip())
            position = line_end + 1
        self._buffer = buffer[position:]
        self.leftover = self.done and bool(self._buffer)
        return b"".join(out)

    def _read_size_line(self, line: bytes) -> None:
        if self._in_trailer:
            self.done = not line
            return
        digits = line.partition(b";")[0].strip()
        if not digits or not _HEX.issuperset(digits) or len(digits) > 16:  # int() would take a sign and underscores
            raise ConnectionLost(f"the server broke the chunked encoding: {line[:40]!r}")
        size = int(digits, 16)
        self._in_trailer = size == 0
        self._left = size + 2 if size else 0
