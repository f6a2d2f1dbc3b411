"""`!command` in the chat: a person's own command. It runs as in their shell, is shown, and goes to the model beside the next prompt."""

from __future__ import annotations

from collections.abc import Callable

from cru.engine.parts import Parts
from cru.events.stream import ToolOutput
from cru.process.capture import TextCapture
from cru.process.child import Program
from cru.process.errors import StartError
from cru.process.run import run_program

KEPT = 30_000
"""Characters of the output that the model gets, the first and the last of it."""
SHELL = "/bin/sh"


async def run_own_command(parts: Parts, command: str, show: Callable[[str], None]) -> str:
    """Run it in the project root, in $SHELL; what the model is to know of it. `show` prints what came of it. Raises StartError. Cancelled,
    it is ended with all that it started."""
    emit: Callable[[str], None] = lambda text: parts.bus.stream.tell(ToolOutput(f"!{command}", text))  # noqa: E731
    shell = parts.env.get("SHELL") or SHELL
    program = Program((shell, "-c", command), parts.root, parts.env, is_bound=True)
    try:
        ended = await run_program(program, None, TextCapture(emit, KEPT))
    except StartError:
        if shell == SHELL:
            raise
        program = Program((SHELL, "-c", command), parts.root, parts.env, is_bound=True)
        ended = await run_program(program, None, TextCapture(emit, KEPT))
    status = f"\n[exit code {ended.exit_status}]" if ended.exit_status else ""
    text = f"{ended.output.rstrip()}{status}".lstrip("\n") or "(no output)"
    show(text)
    return f"The user ran a command of their own:\n$ {command}\n{text}"
