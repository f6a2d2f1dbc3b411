"""HTTP/1.1 to servers on this machine, over plain sockets: no TLS, no proxies, nothing to load.

Local model servers send their first byte only when the prompt is processed, and a cancelled request must stop that work, so
the connection has to close at once. The library that speaks to remote servers does that only after the answer has begun
(docs/decisions/network.md)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from cru.core.base.net import BadUrl, ConnectFailed, ConnectionLost, Response, TimeLimits, Url, gone_silent, no_answer
from cru.core.base.values.cancellation import TimeLimit

_CHUNK = 65536
_IDLE_KEPT = 4  # idle connections kept for each server
_AT_ONCE = 65536  # bytes of a request that are copied to be sent as one
_PARTS = 1024  # that the system takes at once (IOV_MAX)
_HEAD_BYTES = 65536
_HEX = frozenset(b"0123456789abcdefABCDEF")
_SIZE_LINE_BYTES = 4096
_TRAILER_BYTES = 65536


class _Connection:
    """A connected socket. (The transports of asyncio load TLS to make sure that a socket has none.)"""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._number = connected, connected.fileno()
        self._loop = asyncio.get_running_loop()
        self._unread = b""
        self._has_ended = self._is_watched = False
        self._arrival: asyncio.Future[None] | None = None

    def is_usable(self) -> bool:
        """Return whether it is open and nothing came that was not asked for."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return not self.has_unread
        except OSError:
            pass
        return False

    @property
    def has_unread(self) -> bool:
        """Whether more was received than was read, or the end of the connection."""
        return bool(self._unread) or self._has_ended

    def close(self) -> None:
        """Close it at once, also with a request that is half sent."""
        if self._socket.fileno() >= 0:
            self._unwatch()
            self._loop.remove_writer(self._number)
            self._socket.close()

    def start_sending(self, request: Sequence[bytes]) -> asyncio.Task[None] | None:
        """Send a request: what the system takes at once, and the rest in a task (None: there is none). A connection that breaks is
        noticed by who reads the answer."""
        if sum(map(len, request)) > _AT_ONCE:
            return self._loop.create_task(self._send(request))
        data = b"".join(request)
        sent = self._send_many([memoryview(data)])
        return None if sent == len(data) else self._loop.create_task(self._send((data[sent:],)))

    async def _send(self, request: Sequence[bytes]) -> None:
        """In pieces of what there is, so that nothing is copied."""
        waiting = [memoryview(part) for part in reversed(request) if part]  # the next one last
        while waiting:
            sent = self._send_many(waiting[: -_PARTS - 1 : -1])
            while waiting and sent >= len(waiting[-1]):
                sent -= len(waiting.pop())
            if waiting and sent:
                waiting[-1] = waiting[-1][sent:]
            if waiting:
                await _wait_for(self._socket, self._loop.add_writer, self._loop.remove_writer)

    def _send_many(self, parts: list[memoryview]) -> int:
        """Send with one system call; return how many bytes went out, all of them if the peer has gone."""
        try:
            return self._socket.sendmsg(parts)
        except BlockingIOError:
            return 0
        except OSError:
            return sum(map(len, parts))

    async def read_head(self) -> bytes:
        """Return what comes before the next blank line. Raises ConnectionLost, OSError."""
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            if not self.has_unread:
                await self._wait()  # the answer to a request that has just gone out takes its time
            piece = self._take()
            if not piece or len(data) > _HEAD_BYTES:
                raise ConnectionLost("the connection broke before the answer")
            data += piece
        self._unread = data[end + 4 :]
        return data[:end]

    async def read(self, patience: float | None = None) -> bytes:
        """Return what comes next, b"" at the end; it is waited for so many seconds. Raises OSError, TimeoutError."""
        if not self.has_unread and not self._receive():
            with TimeLimit(patience):
                await self._wait()
        return self._take()

    def _take(self) -> bytes:
        data, self._unread = self._unread, b""
        return data

    def _receive(self) -> bool:
        """Read what has arrived; False if nothing has. Raises OSError."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        self._unread += data
        self._has_ended = not data
        return True

    async def _wait(self) -> None:
        """Wait until something has been received. Raises OSError.

        The socket stays registered with the loop afterwards: each request would otherwise register and remove it, which takes 27 Python
        calls and two system calls.
        """
        self._arrival = self._loop.create_future()
        if not self._is_watched:
            self._is_watched = True
            self._loop.add_reader(self._number, self._readable)
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _readable(self) -> None:
        arrival = self._arrival
        if arrival is None or arrival.done():
            self._unwatch()  # it is for whoever reads next; until then the loop would report it again and again
            return
        try:
            if self._receive():
                arrival.set_result(None)
        except OSError as error:
            arrival.set_exception(error)

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._number)


async def _wait_for(
    connection: socket.socket,
    add: Callable[[int, Callable[[], None]], None],
    remove: Callable[[int], bool],
) -> None:
    """Wait until a socket can be read, or written. The loop is given its number: it writes sockets out in words, with system calls."""
    is_ready = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not is_ready.done():  # who waits may be cancelled in the same moment
            is_ready.set_result(None)

    add(connection.fileno(), wake)
    try:
        await is_ready
    finally:
        if connection.fileno() >= 0:
            remove(connection.fileno())


async def _open_socket(host: str, port: int) -> socket.socket:
    """A connected socket. Nothing is looked up: `localhost` is this machine, whatever a name server says. Raises OSError."""
    problem = 0
    for address in ("127.0.0.1", "::1") if host == "localhost" else (host,):
        connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        try:
            connection.setblocking(False)
            problem = connection.connect_ex((address, port))
            if problem == errno.EINPROGRESS:
                loop = asyncio.get_running_loop()
                await _wait_for(connection, loop.add_writer, loop.remove_writer)
                problem = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not problem:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
        except BaseException:  # also when cancelled: the socket is closed, and it is raised again
            connection.close()
            raise
        connection.close()
    raise OSError(problem, os.strerror(problem))


class LoopbackClient:
    """Connections to local servers, kept open between requests. Belongs to the event loop that first uses it."""

    def __init__(self, limits: TimeLimits) -> None:
        self._limits = limits
        self._idle: dict[tuple[str, int], list[_Connection]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, method: str, url: Url, headers: Mapping[str, str], body: Sequence[bytes]) -> Response:
        """Send one request and wait for the head of its answer. Raises ConnectFailed, ConnectionLost, TimedOut."""
        request = encode_head(method, url, headers, sum(map(len, body))), *body
        for connection in self._take_idle(url):
            try:  # the server may have closed a kept connection just now: then nothing was answered, so send it again
                return await self._exchange(connection, method, url, request)
            except ConnectionLost:
                continue
        return await self._exchange(await self._connect(url), method, url, request)

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
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
            connection.close()
        return []

    async def _connect(self, url: Url) -> _Connection:
        where = f"{url.host}:{url.port}"
        try:
            with TimeLimit(self._limits.connect):
                return _Connection(await _open_socket(url.host, url.port))
        except TimeoutError as error:
            raise ConnectFailed(f"no connection to {where} within {self._limits.connect:g} s") from error
        except OSError as error:
            raise ConnectFailed(
                f"no connection to {where}: {error.strerror or error}", "is the server running?"
            ) from error

    async def _exchange(self, connection: _Connection, method: str, url: Url, request: Sequence[bytes]) -> Response:
        sending = connection.start_sending(request)
        try:
            status, headers = await self._head(connection)
        except BaseException:  # also when cancelled: the server must see that nobody waits any more
            connection.close()
            raise
        finally:  # a server may answer before it has read everything, with a refusal
            was_sent = sending is None or sending.done()
            if sending is not None:
                sending.cancel()
        body = BodyDecoder(status, headers, method)
        keep = was_sent and headers.get("connection", "").lower() != "close"

        async def close() -> None:
            if body.done and keep and not body.leftover and not connection.has_unread:
                kept = self._idle.setdefault((url.host, url.port), [])
                if len(kept) < _IDLE_KEPT and connection not in kept:
                    kept.append(connection)
                    return
            connection.close()

        return Response(status, headers, self._chunks(connection, body), close)

    async def _head(self, connection: _Connection) -> tuple[int, dict[str, str]]:
        try:
            with TimeLimit(self._limits.first_byte):
                while True:
                    status, headers = parse_head(await connection.read_head())
                    if status >= 200:
                        return status, headers
        except TimeoutError as error:
            raise no_answer(self._limits) from error
        except OSError as error:
            raise ConnectionLost("the connection broke before the answer") from error

    async def _chunks(self, connection: _Connection, body: BodyDecoder) -> AsyncGenerator[bytes, None]:
        while not body.done:
            try:
                data = await connection.read(self._limits.idle)
            except TimeoutError as error:
                raise gone_silent(self._limits) from error
            except OSError as error:
                raise ConnectionLost("the connection broke in the middle of the answer") from error
            if not data:
                body.end()
                return
            yield body.feed(data)  # also if it is nothing: the reader's patience has an end too


def encode_head(method: str, url: Url, headers: Mapping[str, str], body_bytes: int) -> bytes:
    """A request up to its body. Line breaks in header values are refused (they would start a new header)."""
    lines = [f"{method} {url.target} HTTP/1.1", f"host: {url.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body_bytes or method in ("POST", "PUT", "PATCH"):
        lines.append(f"content-length: {body_bytes}")
    text = "".join(lines)
    if "\r" in text or "\n" in text:
        raise BadUrl("a request header holds a line break", "check the key and base_url settings for stray newlines")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"


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
        self._trailer_left = 0  # bytes that the lines after the last chunk may still have
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
            line_end = buffer.find(b"\n", position, position + _SIZE_LINE_BYTES)
            if line_end < 0:
                if len(buffer) - position >= _SIZE_LINE_BYTES:
                    raise _broken_framing(buffer[position:])
                break
            self._read_line(buffer[position:line_end].strip())
            position = line_end + 1
        self._buffer = buffer[position:]
        self.leftover = self.done and bool(self._buffer)
        return b"".join(out)

    def _read_line(self, line: bytes) -> None:
        """A line between chunks: the size of the next one, or a trailer after the last one."""
        if self._trailer_left:
            self._trailer_left -= len(line) + 1
            self.done = not line
            if self._trailer_left <= 0:
                raise _broken_framing(line)
            return
        digits = line.partition(b";")[0].strip()
        if not digits or not _HEX.issuperset(digits) or len(digits) > 16:  # int() would take a sign and underscores
            raise _broken_framing(line)
        size = int(digits, 16)
        self._trailer_left = 0 if size else _TRAILER_BYTES
        self._left = size + 2 if size else 0


def _broken_framing(line: bytes) -> ConnectionLost:
    return ConnectionLost(f"the server broke the chunked encoding: {line[:40]!r}")
