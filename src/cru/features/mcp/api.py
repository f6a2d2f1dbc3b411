"""`cru.mcp`: the MCP servers of the session, for scripts. A call goes the road of all calls: hooks hear it, rules and modes hold; where a
rule would ask a person, a script is refused."""

from __future__ import annotations

import msgspec

from cru.core.api import plain_data
from cru.core.api.arguments import table, text
from cru.core.api.host import host
from cru.core.base.values.errors import CruError
from cru.core.base.values.mcp_names import join_names
from cru.core.turn.calls import side_calls
from cru.features.mcp import McpError
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.pool import ServerPool, server_pool

NONE = "no MCP servers are configured"


def servers() -> list[str]:
    """mcp.servers() -> the names of the MCP servers

    Example: #cru.mcp.servers() --> 0
    """
    pool = _pool()
    return [] if pool is None else [server.name for server in pool.servers]


async def list_tools(server: str) -> list[dict[str, object]]:
    """mcp.list_tools(server) -> {{name, description, input_schema}, ...} by the server's own names; {} if there is none of that name. It
    waits for a server that is starting.

    Example: #cru.mcp.list_tools("nobody") --> 0
    """
    known = await _ready(text("cru.mcp.list_tools", "server", server))
    tools = () if known is None else known.facts.tools
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools]


async def has_tool(server: str, name: str) -> bool:
    """mcp.has_tool(server, name) -> whether the server has a tool of that name

    Example: cru.mcp.has_tool("nobody", "nothing") --> false
    """
    text("cru.mcp.has_tool", "name", name)
    return any(tool["name"] == name for tool in await list_tools(server))


async def call(server: str, name: str, args: dict[str, object] | None = None) -> dict[str, object]:
    """mcp.call(server, name, args?) -> {success = true, content} or {success = false, error}; content is text. It raises nothing of a
    server's.

    Example: cru.mcp.call("nobody", "nothing").success --> false
    """
    where = "cru.mcp.call"
    try:
        arguments = plain_data.encode(where, table(where, "args", args)).decode()
    except CruError as error:
        return {"success": False, "error": error.message}
    return await _call(text(where, "server", server), text(where, "name", name), arguments)


async def call_json(server: str, name: str, arguments: str) -> dict[str, object]:
    """mcp.call_json(server, name, json) -> as call; the arguments are JSON text

    Example: cru.mcp.call_json("nobody", "nothing", "{}").success --> false
    """
    where = "cru.mcp.call_json"
    return await _call(text(where, "server", server), text(where, "name", name), text(where, "json", arguments))


async def _call(server: str, name: str, arguments: str) -> dict[str, object]:
    pool = _pool()
    if pool is None:
        return {"success": False, "error": NONE}
    try:
        known = pool.find(server)
    except McpError as error:
        return {"success": False, "error": error.message}
    try:
        msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return {"success": False, "error": f"not JSON: {error}"}
    done = await side_calls.call(host().parts, join_names(known.name, name), arguments, "script")
    return {"success": False, "error": done.content} if done.is_error else {"success": True, "content": done.content}


async def _ready(name: str) -> ServerConnection | None:
    """The server, once it has answered or failed."""
    pool = _pool()
    server = None if pool is None else next((server for server in pool.servers if server.name == name), None)
    if server is not None:
        await server.wait_settled()
    return server


def _pool() -> ServerPool | None:
    return server_pool(host().session.parts.services)
