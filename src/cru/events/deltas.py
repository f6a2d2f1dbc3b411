"""Deltas for handlers: coalesced (50 ms or 4 KiB), in order, through a bounded queue that the model's stream never awaits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.events.payloads import AgentThinking, StreamingDelta

if TYPE_CHECKING:
    from cru.events.bus import Bus

WINDOW = 0.05
CHUNK = 4096
MOST = 256 * 1024


class DeltaQueue:
    """Collects text by kind; one task hands it to the handlers. What waits is bounded: over MOST characters
    the rest is left out, with a warning."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._parts: list[Struct] = []
        self._size = 0
        self._told = False
        self._task: asyncio.Task[None] | None = None
        self._full = asyncio.Event()

    def put(self, payload: Struct) -> None:
        if self._size >= MOST:
            if not self._told:
                self._told = True
                self._bus.stream.warn(
                    f"handlers of deltas are too slow: text beyond {MOST} characters was not shown to them"
                )
            return
        self._parts.append(payload)
        self._size += len(_text(payload))
        if self._task is None or self._task.done():
            self._full.clear()
            self._task = asyncio.get_running_loop().create_task(self._deliver())
        if self._size >= CHUNK:
            self._full.set()

    async def flush(self) -> None:
        while self._task is not None and (self._parts or not self._task.done()):
            self._full.set()
            await self._task

    async def close(self) -> None:
        self._parts.clear()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _deliver(self) -> None:
        while self._parts:
            try:
                await asyncio.wait_for(self._full.wait(), WINDOW)
            except TimeoutError:
                pass
            self._full.clear()
            parts, self._parts, self._size = self._parts, [], 0
            for payload in _merged(parts):
                await self._bus.dispatch_delta(payload)


def _text(payload: Struct) -> str:
    return payload.thought if isinstance(payload, AgentThinking) else str(getattr(payload, "delta", ""))


def _merged(parts: list[Struct]) -> list[Struct]:
    merged: list[Struct] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, AgentThinking) and isinstance(last, AgentThinking):
            merged[-1] = AgentThinking(last.thought + part.thought, last.seq)
        elif isinstance(part, StreamingDelta) and isinstance(last, StreamingDelta):
            merged[-1] = StreamingDelta(last.delta + part.delta, last.seq)
        else:
            merged.append(part)
    return merged
