"""Standard input and output as the wire, without threads: one that reads could not be ended while nothing comes."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator

from cru.faces.mcp_server.errors import ServeError

PIECE = 64 << 10
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
    return WireInput(wires[0]), WireOutput(wires[1])


class WireInput:
    """The lines of the client, as the SDK's transport takes them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def __aiter__(self) -> AsyncIterator[str]:
        """To the end of input. Raises ServeError for a line without end."""
        pieces: list[bytes] = []
        size = 0
        while piece := await self._read():
            *lines, rest = piece.split(b"\n")
            for line in lines:
                yield b"".join((*pieces, line)).decode(errors="replace")
                pieces, size = [], 0
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

    async def write(self, text: str) -> None:
        data = memoryview(text.encode())
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                await _ready(self._descriptor, for_reading=False)

    async def flush(self) -> None:
        """Nothing is held back."""


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
