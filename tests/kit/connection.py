"""One client of the scripted server: read a request, play its step, and notice when the client goes away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

import msgspec
from tests.kit.steps import Drop, Hang, Raw, Received, Reply, Status, Step
from tests.kit.wire import render, unfinished

MODELS = b'{"object":"list","data":[{"id":"mock","object":"model","owned_by":"kit"}]}'
POLL = 0.005


class Script(Protocol):
    """What a connection asks of the server."""

    key: str
    models: bytes

    def take(self, request: Received) -> tuple[int, Step]: ...

    def lost(self, number: int) -> None: ...

    def failed(self, error: Exception) -> None: ...


class Connection:
    """`run` serves requests until either side closes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: Script) -> None:
        self._in, self._out, self._script = reader, writer, script

    async def run(self) -> None:
        try:
            while (request := await self._read()) is not None:
                if not await self._answer(request):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the server closes
        except Exception as error:  # noqa: BLE001  a boundary: the test hears of it when the server closes
            self._script.failed(error)
        finally:
            self._out.close()

    async def _read(self) -> Received | None:
        first = await self._in.read(1)
        began = time.monotonic()
        if not first:
            return None
        head = (first + await self._in.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        raw = await self._body(headers)
        return Received(method, path, headers, _parsed(raw), raw, began, time.monotonic())

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if "chunked" not in headers.get("transfer-encoding", ""):
            return await self._in.readexactly(int(headers.get("content-length", "0")))
        parts = []
        while size := int((await self._in.readline()).split(b";")[0], 16):
            parts.append((await self._in.readexactly(size + 2))[:-2])
        await self._in.readline()
        return b"".join(parts)

    async def _answer(self, request: Received) -> bool:
        """Whether the connection stays open."""
        if request.method == "GET" and request.path.endswith("/models"):
            if self._script.key and request.headers.get("authorization") != f"Bearer {self._script.key}":
                await self._whole(401, {"content-type": "application/json"}, _error(401, "who are you?"))
                return True
            await self._whole(200, {"content-type": "application/json"}, self._script.models)
            return True
        number, step = self._script.take(request)
        playing = asyncio.ensure_future(self._play(request, number, step))
        leaving = asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait((playing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not playing.done() or isinstance(playing.exception(), ConnectionError):
                self._script.lost(number)
                return False
            return playing.result() and request.headers.get("connection", "").lower() != "close"
        finally:
            playing.cancel()
            leaving.cancel()

    async def _gone(self) -> None:
        while not self._in.at_eof() and self._in.exception() is None:
            await asyncio.sleep(POLL)

    async def _play(self, request: Received, number: int, step: Step) -> bool:
        match step:
            case Reply():
                return await self._reply(request, number, step)
            case Status(code, headers, body):
                await self._whole(code, {"content-type": "application/json", **headers}, _error(code, body))
            case Drop(before=True):
                return False
            case Drop(after_bytes, _, reply):
                await self._head("text/event-stream")
                await self._chunks(render(request.path, reply, number, stream=True)[:after_bytes], reply)
                return False
            case Hang(text):
                await self._head("text/event-stream")
                await self._chunks(unfinished(request.path, text), Reply())
                await asyncio.Event().wait()
            case Raw(data, split):
                await self._pieces(data, split)
                return False
        return True

    async def _reply(self, request: Received, number: int, reply: Reply) -> bool:
        await asyncio.sleep(reply.delay)
        streams = ":streamGenerateContent" in request.path or (
            isinstance(request.body, dict) and bool(request.body.get("stream"))
        )
        stream = streams and not reply.json
        body = render(request.path, reply, number, stream)
        if not stream:
            await self._whole(200, {"content-type": "application/json"}, body, reply.split)
            return True
        await self._head("text/event-stream")
        await self._chunks(body, reply)
        self._out.write(b"0\r\n\r\n")
        await self._out.drain()
        return True

    async def _head(self, kind: str) -> None:
        self._out.write(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % kind.encode())
        await self._out.drain()

    async def _chunks(self, body: bytes, reply: Reply) -> None:
        size = reply.split or max(len(body), 1)
        for i in range(0, len(body), size):
            part = body[i : i + size]
            self._out.write(b"%x\r\n%s\r\n" % (len(part), part))
            await self._out.drain()
            await asyncio.sleep(reply.gap)

    async def _whole(self, code: int, headers: Mapping[str, str], body: bytes, split: int = 0) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._out.write(f"HTTP/1.1 {code} Scripted\r\n{lines}content-length: {len(body)}\r\n\r\n".encode())
        await self._pieces(body, split)

    async def _pieces(self, data: bytes, split: int) -> None:
        size = split or max(len(data), 1)
        for i in range(0, len(data), size):
            self._out.write(data[i : i + size])
            await self._out.drain()
            await asyncio.sleep(0)


def _parsed(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None


def _error(code: int, body: str | bytes) -> bytes:
    if isinstance(body, bytes):
        return body
    return msgspec.json.encode({"error": {"message": body, "code": code, "type": "scripted"}})
