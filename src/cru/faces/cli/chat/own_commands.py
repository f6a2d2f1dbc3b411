"""`!command` in the chat: a person's own command. It runs as in their shell, is shown, and goes to the model beside the next prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.run import run_program
from cru.core.events.stream import ToolOutput
from cru.core.turn.parts import Parts, Workplace

KEPT = 30_000
"""Characters of the output that the model gets, the first and the last of it."""
SHELL = "/bin/sh"


async def run_own_command(parts: Parts, command: str, show: Callable[[str], None]) -> str:
    """Run it in the project root, in $SHELL, and return what the model is to know of it. `show` prints what came of it.

    Cancelled, it is ended with all that it started, and the result says so. Raises StartError."""
    emit: Callable[[str], None] = lambda text: parts.bus.stream.tell(ToolOutput(f"!{command}", text))  # noqa: E731
    shell = parts.place.env.get("SHELL") or SHELL
    try:
        output, status = await _run(parts.place, (shell, "-c", command), emit)
    except StartError:
        if shell == SHELL:
            raise
        output, status = await _run(parts.place, (SHELL, "-c", command), emit)
    text = f"{output.rstrip()}{status}".lstrip("\n") or "(no output)"
    show(text)
    return f"The user ran a command of their own:\n$ {command}\n{text}"


async def _run(place: Workplace, argv: tuple[str, ...], emit: Callable[[str], None]) -> tuple[str, str]:
    """Return the output, and a line that says how the command ended, "" if it ended well. Raises StartError."""
    capture = TextCapture(emit, KEPT)
    try:
        ended = await run_program(Program(argv, place.root, place.env, is_bound=True), None, capture)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return capture.close(), "\n[interrupted]"
    return ended.output, f"\n[exit code {ended.exit_status}]" if ended.exit_status else ""
