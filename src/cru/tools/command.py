"""How tools run a program of theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cru.process.capture import LIMIT
from cru.process.errors import StartError
from cru.process.run import ProcessResult, run
from cru.tools.protocol import ToolContext, ToolError


async def run_command(
    argv: Sequence[str],
    running: ToolContext,
    seconds: float,
    *,
    emit: Callable[[str], None] | None = None,
    limit: int = LIMIT,
    end_at_limit: bool = False,
) -> ProcessResult:
    """Run it in the project root with the environment of tools, at most so many seconds. Raises ToolError if it cannot be started."""
    try:
        return await run(
            argv, cwd=running.root, env=running.env, timeout=seconds, emit=emit, limit=limit, end_at_limit=end_at_limit
        )
    except StartError as error:
        raise ToolError(error.message, error.hint) from error
