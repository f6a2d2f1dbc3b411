"""The tool `task`: work for a sub-agent."""

from __future__ import annotations

from cru.core.tools.protocol import AgentRequest, ToolContext, ToolOptions, ToolResult, require


async def task(args: AgentRequest, running: ToolContext, options: ToolOptions) -> ToolResult:
    """Have a sub-agent do something."""
    return await require(running.services.spawner, "spawner")().delegate(args, running.call_id)
