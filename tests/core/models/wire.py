"""A real HTTP server of raw bytes on a free port of 127.0.0.1: each request is answered by the next step of a list."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.kit.server import stop_accepting


class Seen:
    """One request as the server saw it. `gone` is set when the client closed the connection while it was being answered."""

    def __init__(self, head: bytes, body: bytes, connection: int) -> None:
        self.line, *lines = head.decode("latin-1").split("\r\n")
        self.headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines) if n}
        self.body = body
        self.connection = connection
        self.gone = asyncio.Event()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Peer:
    """What a step may do with its connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen) -> None:
        self.reader, self.writer, self.seen = reader, writer, seen

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: int, headers: str) -> None:
        await self.send(f"HTTP/1.1 {status} Status\r\n{headers}\r\n".encode())

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def wait_for_close(self) -> None:
        try:
            await self.reader.read()
        except ConnectionError:
            pass
        self.seen.gone.set()


Step = Callable[[Peer], Awaitable[None]]


class Wire:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self.requests: list[Seen] = []
        self.connections = 0
        self.port = 0
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1"

    async def until(self, count: int) -> Seen:
        """Wait until so many requests have come; the last of them."""
        async with asyncio.timeout(30):
            while len(self.requests) < count:
                await asyncio.sleep(0.005)
        return self.requests[count - 1]

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                seen = Seen(head[:-4], b"", number)
                seen.body = await reader.readexactly(int(seen.headers.get("content-length", "0")))
                self.requests.append(seen)
                step = self.steps.pop(0) if self.steps else status(500, "the test's script has no more steps")
                await step(Peer(reader, writer, seen))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serve(*steps: Step, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
    wire = Wire(steps)
    running: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        task = asyncio.ensure_future(wire.accept(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    wire.port = server.sockets[0].getsockname()[1]
    wire.scheme = "https" if tls else "http"
    try:
        yield wire
    finally:
        await stop_accepting(server)
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for writer in writers:  # what the peer has not read keeps a transport open beyond the loop
            with suppress(AttributeError):  # Python 3.11.2 cannot abort a TLS transport that has ended
                writer.transport.abort()
        await asyncio.sleep(0)


# ---- steps ----


def status(code: int, body: str = "", headers: str = "") -> Step:
    async def step(peer: Peer) -> None:
        data = body.encode()
        await peer.head(code, f"content-length: {len(data)}\r\n{headers}")
        await peer.send(data)

    return step


def whole(body: Any) -> Step:
    return status(200, body if isinstance(body, str) else json.dumps(body), "content-type: application/json\r\n")


def stream(*pieces: bytes, pause: float = 0.0) -> Step:
    """A chunked event stream, one HTTP chunk a piece, ended properly."""

    async def step(peer: Peer) -> None:
        await peer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        for piece in pieces:
            await peer.chunk(piece)
            if pause:
                await asyncio.sleep(pause)
        await peer.send(b"0\r\n\r\n")

    return step


def broken_stream(*pieces: bytes) -> Step:
    """A stream whose connection is cut after the pieces."""

    async def step(peer: Peer) -> None:
        await peer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        for piece in pieces:
            await peer.chunk(piece)
        peer.writer.close()

    return step


def open_stream(*pieces: bytes) -> Step:
    """A stream that sends the pieces and then nothing, until the client goes away."""

    async def step(peer: Peer) -> None:
        await peer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        for piece in pieces:
            await peer.chunk(piece)
        await peer.wait_for_close()

    return step


async def hang(peer: Peer) -> None:
    """No answer at all, until the client goes away."""
    await peer.wait_for_close()


async def drop(peer: Peer) -> None:
    """The connection is closed without an answer."""
    peer.writer.close()


# ---- events of an OpenAI-compatible server ----


def sse(*events: Any, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def finish(reason: str = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **fields}


def hello() -> Step:
    return stream(sse(delta(content="hello"), finish()))
