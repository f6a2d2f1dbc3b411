"""Tools that can be called as a task of the protocol only (its version 2025-11-25 has tasks): begun, awaited, and ended with who asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult

CANCEL_SECONDS = 2.0


async def call_as_task(client: Client, tool: str, args: dict[str, Any]) -> CallToolResult:
    """What came of it. Raises what the SDK does."""
    import mcp_types as types

    params = types.CallToolRequestParams(name=tool, arguments=args, task=types.TaskMetadata())
    begun = await client.session.send_request(types.CallToolRequest(params=params), types.CreateTaskResult)
    task = begun.task.task_id
    request = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task))
    try:
        return await client.session.send_request(request, types.CallToolResult)  # it answers when the task has ended
    except asyncio.CancelledError:
        await _cancel(client, task)
        raise


async def _cancel(client: Client, task: str) -> None:
    import mcp_types as types
    from mcp.shared.exceptions import MCPError

    request = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task))
    try:
        async with asyncio.timeout(CANCEL_SECONDS):
            await client.session.send_request(request, types.CancelTaskResult)
    except (MCPError, TimeoutError):
        pass  # it had ended, or nobody hears it any more
