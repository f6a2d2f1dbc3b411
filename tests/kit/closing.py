"""What a test opened in its own process is given back when it is over: files of contexts, journals, traces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

Close = Callable[[], Awaitable[None] | None]
_open: list[Close] = []


class Closeable(Protocol):
    def close(self) -> Awaitable[None] | None: ...


C = TypeVar("C", bound=Closeable)


def close_later(close: Close) -> None:
    """Call it once the running test is over."""
    _open.append(close)


def closed_later(resource: C) -> C:
    """The same, closed once the running test is over."""
    close_later(resource.close)
    return resource


def close_all() -> None:
    """Close what is still open; the kit calls it once a test is over."""
    if _open:
        asyncio.run(_close_all())


async def _close_all() -> None:
    while _open:
        pending = _open.pop()()
        if pending is not None:
            await pending
