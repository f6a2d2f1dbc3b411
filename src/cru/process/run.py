"""A command of a tool: no input, output and errors through one pipe, ended with everything it started."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cru.process.capture import LIMIT, Capture
from cru.process.child import Child
from cru.process.descent import mark
from cru.process.errors import start_error

GRACE = 2.0


class ProcessResult(Struct, frozen=True):
    """What came of a child. `code` is its exit status, negative for a signal. `background` is the process group of what it
    left running with its output open, or 0. `cut`: more output than the limit."""

    output: str
    code: int
    timed_out: bool = False
    background: int = 0
    cut: bool = False


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,  # noqa: ASYNC109  (a result of its own, not an exception)
    emit: Callable[[str], None] | None = None,
    limit: int = LIMIT,
    end_at_limit: bool = False,
) -> ProcessResult:
    """Run `argv` to its end. Times in seconds, `limit` in characters. Raises StartError if it cannot be started.

    After `timeout`, when cancelled, or at the limit if asked so, the child is ended with all that it started: SIGTERM, two seconds,
    SIGKILL. Once the child itself is gone, output that something else keeps open is awaited for 0.2 s more.
    """
    capture = Capture(emit, limit)

    def sink(data: bytes) -> None:
        capture.feed(data)
        if end_at_limit and capture.left_out:
            child.finish()

    try:
        child = Child(argv, cwd, env, sink, mark=mark(env))
    except (OSError, ValueError) as error:
        raise start_error(error, argv, cwd) from error
    try:
        timed_out = await child.wait(timeout)
    finally:
        try:
            if not child.ended:
                await end(child)
        finally:
            code, background = child.close()
            output = capture.close()
    return ProcessResult(output, code, timed_out, background, capture.left_out > 0)


async def end(child: Child) -> None:
    """End the child and all that it started; a second cancellation only cuts the grace short."""
    try:
        child.signal(signal.SIGTERM)
        child.signal(signal.SIGCONT)  # one that is stopped hears of nothing
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GRACE
        while child.alive() and loop.time() < deadline:  # noqa: ASYNC110  (nothing tells of it)
            await asyncio.sleep(0.01)
    finally:
        child.kill()
        child.drain()
