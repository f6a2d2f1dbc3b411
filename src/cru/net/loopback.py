"""HTTP/1.1 to servers on this machine, over asyncio streams: no TLS, no proxies, nothing to load.

Local model servers send their first byte only when the prompt is processed, and a cancelled request must stop that work, so
the connection has to close at once. The library that speaks to remote servers does that only after the answer has begun
(docs/decisions/0001-http-client.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from cru.net import ConnectFailed, ConnectionLost, TimedOut
from cru.net.http import Response, Url
from cru.net.http1 import BodyDecoder, encode_request, parse_head

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
