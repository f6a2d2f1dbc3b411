"""Standard input and output as the wire, without threads: one that reads could not be ended while nothing comes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator

from cru.core.base.values.errors import CruError


class ServeError(CruError):
    """The server cannot be started."""


PIECE = 64 << 10
PARSE_ERROR = -32700
LONGEST_LINE = 64 << 20
"""Bytes of a message."""


def take_standard_streams() -> tuple[WireInput, WireOutput]:
    """The wire. From now on standard input is empty, and what anybody prints goes to standard error."""
    wires = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1)]
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    for wire in wires:
        os.set_blocking(wire, False)
    sink = WireOutput(wires[1])
    return WireInput(wires[0], sink), sink


class WireInput:
    """The lines of the client, as the SDK's transport takes them. What is no JSON, which that passes by in silence, is answered as such."""

    def __init__(self, descriptor: int, sink: WireOutput) -> None:
        self._descriptor = descriptor
        self._sink = sink

    async def __aiter__(self) -> AsyncIterator[str]:
        """To the end of input. Raises ServeError for a line without end."""
        pieces: list[bytes] = []
        size = 0
        while piece := await self._read():
            *lines, rest = piece.split(b"\n")
            for line in lines:
                message = b"".join((*pieces, line)).decode(errors="replace")
                pieces, size = [], 0
                if problem := _why_unreadable(message):
                    await self._sink.write(_refusal(message, problem))
                else:
                    yield message
            pieces.append(rest)
            size += len(rest)
            if size > LONGEST_LINE:
                raise ServeError(f"a message of the client is longer than {LONGEST_LINE >> 20} MiB")

    async def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._descriptor, PIECE)
            except BlockingIOError:
                await _ready(self._descriptor, for_reading=True)


class WireOutput:
    """Where lines for the client go. Raises BrokenPipeError once it has gone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._alone = asyncio.Lock()

    async def write(self, text: str) -> None:
        data = memoryview(text.encode())
        async with self._alone:
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:
                    await _ready(self._descriptor, for_reading=False)

    async def flush(self) -> None:
        """Nothing is held back."""


def _why_unreadable(message: str) -> str:
    """Why a line is no JSON for the SDK, which reads it so; "" for one that is, and for an empty one."""
    from pydantic_core import from_json

    try:
        if message.strip():
            from_json(message)
    except ValueError as error:
        return str(error)
    return ""


def _refusal(message: str, problem: str) -> str:
    """The answer to such a line, for the request that it is as far as that can be read (JSON-RPC 2.0, 5.1)."""
    try:
        request = json.loads(message).get("id")
    except (ValueError, RecursionError, AttributeError):
        request = None
    known = request if isinstance(request, int | str) else None
    answer = {"jsonrpc": "2.0", "id": known, "error": {"code": PARSE_ERROR, "message": f"not JSON: {problem}"}}
    return json.dumps(answer) + "\n"


async def _ready(descriptor: int, *, for_reading: bool) -> None:
    """Wait until it can be read or written."""
    loop = asyncio.get_running_loop()
    add, remove = (loop.add_reader, loop.remove_reader) if for_reading else (loop.add_writer, loop.remove_writer)
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, tell)
    try:
        await ready
    finally:
        remove(descriptor)
