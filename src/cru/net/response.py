"""What the transport gives back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

from msgspec import Struct


class Response(Struct):
    """A streamed answer. Header names are lower case. `close` ends the exchange at any point: an unread connection is cut,
    a fully read one is kept for the next request. Whoever gets a Response must close it."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes, None]
    close: Callable[[], Awaitable[None]]

    async def read(self, limit: int) -> bytes:
        """The body's first `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= limit:
                break
        return b"".join(parts)[:limit]


class Fetched(Struct, frozen=True):
    """A whole answer of `get`. `url` is the one that answered after redirects; `truncated` says that the limit cut the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    truncated: bool = False
