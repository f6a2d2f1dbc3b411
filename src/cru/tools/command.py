"""How tools run a program."""

from __future__ import annotations

from collections.abc import Sequence

from cru.process.capture import TextCapture
from cru.process.child import Program
from cru.process.errors import StartError
from cru.process.run import ProcessResult, run_program
from cru.tools.protocol import ToolContext, ToolError


async def run_command(argv: Sequence[str], running: ToolContext, seconds: float, capture: TextCapture) -> ProcessResult:
    """Run it in the project root with the environment of tools, at most so many seconds. Raises ToolError if it cannot be started."""
    try:
        return await run_program(Program(tuple(argv), running.root, running.env, is_marked=True), seconds, capture)
    except StartError as error:
        raise ToolError(error.message, error.hint) from error
