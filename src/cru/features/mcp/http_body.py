"""The body of an answer over HTTP: what is wrong with it fails that one request, not the connection. Loads the HTTP library."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from httpx2 import AsyncByteStream, Response, SSEError, StreamError, TransportError

REFILL = 1024 * 1024
"""Bytes a second that an answer may go on with once it had as many as the largest message."""


class BodyFailure(SSEError, StreamError):
    """Both of what the SDK takes for the failure of one request: of events, and of JSON."""


class BoundedBody(AsyncByteStream):
    """A body that ends where it becomes too long, with replacements for what is no Unicode. Events pass by whole lines, others as a whole.

    largest: bytes that it may have at once; coding: how it is compressed, "" if it is not"""

    def __init__(self, body: AsyncByteStream, largest: int, *, is_events: bool, coding: str = "") -> None:
        self._body = body
        self._largest = largest
        self._is_events = is_events
        self._coding = coding
        self._room = float(largest)
        self._at = time.monotonic()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._coding:  # nobody knows how much it becomes
            raise BodyFailure(f"it compresses its answers ({self._coding}), although it was asked not to")
        held = bytearray()
        try:
            async for piece in self._body:
                self._take(len(piece))
                end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1 if self._is_events else 0
                if end:
                    yield _mend(held + piece[:end])
                    held.clear()
                held += piece[end:]
        except TransportError as error:
            if self._is_events:  # the SDK takes such a stream up again where it can
                raise
            raise BodyFailure(str(error) or "the connection broke") from error
        if held:
            yield _mend(held)

    def _take(self, size: int) -> None:
        now = time.monotonic()
        self._room = min(self._largest, self._room + (now - self._at) * REFILL) - size
        self._at = now
        if self._room < 0:
            raise BodyFailure(f"an answer is longer than {self._largest:,} bytes")

    async def aclose(self) -> None:
        await self._body.aclose()


def _mend(data: bytearray) -> bytes:
    if data.isascii() and b"\\u" not in data:
        return bytes(data)
    from cru.features.mcp.mend import mend

    return mend(bytes(data))


def bound_body(response: Response, largest: int) -> None:
    """Have it end where it becomes too long."""
    if isinstance(response.stream, AsyncByteStream):
        is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        coding = response.headers.get("content-encoding", "").strip().lower().removeprefix("identity")
        response.stream = BoundedBody(response.stream, largest, is_events=is_events, coding=coding[:40])
