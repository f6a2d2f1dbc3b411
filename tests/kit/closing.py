"""What a test opened in its own process is given back when it is over: files of contexts, journals, traces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

Close = Callable[[], Awaitable[None] | None]
_open: list[Close] = []


def close_later(close: Close) -> None:
    """Call it once the running test is over."""
    _open.append(close)


async def _close_all() -> None:
    while _open:
        pending = _open.pop()()
        if pending is not None:
            await pending


@pytest.fixture(autouse=True)
def closes_what_was_opened() -> Iterator[None]:
    yield
    if _open:
        asyncio.run(_close_all())
