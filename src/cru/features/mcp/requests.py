"""Requests to a server: what it offers, page by page, and when that changes; and calls of tools as tasks of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from cru.features.mcp.listing import (
    MOST,
    RemotePrompt,
    RemoteResource,
    RemoteTool,
    read_prompt,
    read_resource,
    read_tool,
)

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult

PAGES = 100
"""A server that never comes to an end comes to one here."""


async def list_tools(client: Client) -> tuple[list[RemoteTool], list[str]]:
    """(tools by their own names, what is wrong with others)."""
    if client.server_capabilities.tools is None:
        return [], []
    tools: dict[str, RemoteTool] = {}
    problems: list[str] = []
    for item in await _pages(client.list_tools, "tools"):
        tool, problem = read_tool(item)
        if problem:
            problems.append(problem)
        elif tool is not None and tool.name in tools:
            problems.append(f"the tool {tool.name} is left out the second time: one of that name came before it")
        elif tool is not None:
            tools[tool.name] = tool
    return list(tools.values()), problems


async def list_resources(client: Client) -> tuple[RemoteResource, ...]:
    """Resources, then templates."""
    if client.server_capabilities.resources is None:
        return ()
    from mcp.shared.exceptions import MCPError

    items = await _pages(client.list_resources, "resources")
    try:
        items += await _pages(client.list_resource_templates, "resource_templates")
    except MCPError:  # many servers have resources and know no templates
        pass
    return tuple(map(read_resource, items))


async def list_prompts(client: Client) -> tuple[RemotePrompt, ...]:
    if client.server_capabilities.prompts is None:
        return ()
    return tuple(map(read_prompt, await _pages(client.list_prompts, "prompts")))


async def _pages(request: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    items: list[Any] = []
    cursor = None
    for _ in range(PAGES):
        page = await request(cursor=cursor)
        items += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(items) >= MOST:
            break
    return items[:MOST]


async def hear_changes(client: Client, changed: asyncio.Event) -> None:
    """Newer servers tell of changes only to who asks."""
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
    from mcp.shared.exceptions import MCPError

    capability = client.server_capabilities.tools
    if capability is None or not capability.list_changed:
        return
    try:
        async with client.listen(tools_list_changed=True) as events:
            async for _ in events:
                changed.set()
    except (ListenNotSupportedError, SubscriptionLost, MCPError):
        return  # it tells by notifications, or not at all


CANCEL_SECONDS = 2.0


async def call_as_task(client: Client, tool: str, args: dict[str, Any]) -> CallToolResult:
    """Call a tool that can be called as a task of the protocol only (its version 2025-11-25 has tasks): start it, wait for it, and cancel
    it with the caller. Raises what the SDK does."""
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
