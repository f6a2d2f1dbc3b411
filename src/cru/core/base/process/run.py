"""A program run to its end, within its limits, and ended with everything that it started."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct

from cru.core.base.process.capture import Capture
from cru.core.base.process.child import Child, Program


class Ending(Struct, frozen=True):
    """How a program is made to end.

    signal: what all of it is asked with
    grace: seconds until what is left is killed, after the time limit; 0: nothing is asked
    grace_interrupted: the same when it is ended for another reason (cancelled, too much output)
    """

    signal: signal.Signals = signal.SIGTERM
    grace: float = 2.0
    grace_interrupted: float = 2.0


PAUSE = 0.01
AT_ONCE = Ending(grace=0, grace_interrupted=0)


class ProcessResult(Struct, frozen=True):
    """What came of a program.

    exit_status: negative for a signal
    output, errors: what was kept of the two outputs; the first has both if there was one capture
    timed_out: the time was over before the program was
    is_cut: it printed more than was kept
    left_behind: the process group of what it left running with its output open, or 0
    """

    exit_status: int
    output: str = ""
    errors: str = ""
    timed_out: bool = False
    is_cut: bool = False
    left_behind: int = 0


Wait = Callable[[Child, float | None], Awaitable[bool]]


async def run_program(
    program: Program,
    seconds: float | None,
    output: Capture | int,
    errors: Capture | int | None = None,
    *,
    ending: Ending = Ending(),
    wait: Wait = Child.wait,
) -> ProcessResult:
    """Run it to its end, at most so many seconds. Without `errors` both outputs come through one pipe; a descriptor is handed on.

    After that time, when cancelled, or when a capture has enough, it is ended with all that it started. `wait` waits for the end in
    another way. Raises StartError if it cannot be started.
    """
    captures = [capture for capture in (output, errors) if capture is not None]
    child = Child(program, *[capture if isinstance(capture, int) else capture.feed for capture in captures])
    timed_out = False
    try:
        timed_out = await wait(child, seconds)
    finally:
        try:
            if not child.ended:
                await end(child, ending.signal, ending.grace if timed_out else ending.grace_interrupted)
        finally:
            left_behind = child.close()
            texts = ["" if isinstance(capture, int) else capture.close() for capture in captures]
    is_cut = any([not isinstance(capture, int) and capture.is_cut for capture in captures])
    assert child.exit_status is not None
    return ProcessResult(child.exit_status, texts[0], "".join(texts[1:]), timed_out, is_cut, left_behind)


async def end(child: Child, number: signal.Signals = signal.SIGTERM, grace: float = Ending().grace) -> None:
    """End the child and all that it started; a second cancellation only cuts the grace short."""
    clean = 0
    try:
        if grace:
            child.signal(number)
            child.signal(signal.SIGCONT)  # one that is stopped hears of nothing
            since = time.monotonic()
            deadline = since + grace
            while clean < 2 and time.monotonic() < deadline:  # a process may fork while it is looked for
                await asyncio.sleep(PAUSE)
                clean = 0 if child.alive(since) else clean + 1
                since = time.monotonic() if clean else since
    finally:
        if clean < 2:
            child.kill()
        child.drain()
