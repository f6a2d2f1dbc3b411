"""Pipes of a child that are read and written when somebody asks for it: what nobody reads yet waits in the kernel."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod

from cru.core.base.process.capture import PIECE


class _Pipe(ABC):
    """Our end of a pipe and the child's. The latter is handed to a child, and closed by `started` once the child has it."""

    def __init__(self, own_end: int, child_end: int) -> None:
        os.set_blocking(own_end, False)
        self.child_end = child_end
        self._own_end = own_end
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []
        """One for each who waits: who is cancelled does not wake the others."""

    def started(self) -> None:
        if self.child_end >= 0:
            os.close(self.child_end)
        self.child_end = -1

    def close(self) -> None:
        """What still waits for it goes on."""
        self.started()
        if self._own_end >= 0:
            if not self._loop.is_closed():
                self._wake()
            os.close(self._own_end)
        self._own_end = -1

    async def _ready(self) -> None:
        """Wait until the kernel has something, or room."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(future)
        if len(self._waiting) == 1:
            self._watch()
        await future

    @abstractmethod
    def _watch(self) -> None:
        """Let the loop call `_wake` when this end is ready."""

    @abstractmethod
    def _unwatch(self) -> None:
        """Let it call that no more."""

    def _wake(self) -> None:
        if self._waiting:
            self._unwatch()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class PipeReader(_Pipe):
    def __init__(self) -> None:
        super().__init__(*os.pipe())

    def _watch(self) -> None:
        self._loop.add_reader(self._own_end, self._wake)

    def _unwatch(self) -> None:
        self._loop.remove_reader(self._own_end)

    async def read(self) -> bytes:
        """The next piece; b"" at the end. Others have their turn before it, however fast the child writes."""
        await asyncio.sleep(0)
        while self._own_end >= 0:
            try:
                return os.read(self._own_end, PIECE)
            except BlockingIOError:
                await self._ready()
        return b""


class PipeWriter(_Pipe):
    def __init__(self) -> None:
        child_end, own_end = os.pipe()
        super().__init__(own_end, child_end)

    def _watch(self) -> None:
        self._loop.add_writer(self._own_end, self._wake)

    def _unwatch(self) -> None:
        self._loop.remove_writer(self._own_end)

    async def write(self, data: bytes) -> None:
        """All of it. Raises BrokenPipeError if nobody reads any more."""
        rest = memoryview(data)
        while rest:
            if self._own_end < 0:
                raise BrokenPipeError
            try:
                rest = rest[os.write(self._own_end, rest) :]
            except BlockingIOError:
                await self._ready()
