"""The tools `task_output` and `task_cancel`."""

from __future__ import annotations

from cru.core.tools.arguments import TaskCancel, TaskOutput
from cru.core.tools.protocol import ToolContext, ToolOptions, ToolResult
from cru.core.tools.shell import tasks_of


async def task_output(args: TaskOutput, running: ToolContext, options: ToolOptions) -> ToolResult:
    """What a task has printed or said since it was last asked for, and how it stands."""
    return await tasks_of(running.services).read_output(args.id, args.wait, args.lines)


async def task_cancel(args: TaskCancel, running: ToolContext, options: ToolOptions) -> ToolResult:
    """End a task with everything that it started."""
    return await tasks_of(running.services).cancel(args.id)
