"""The protocol's side: which tools there are, and calls of them."""

from __future__ import annotations

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import ListToolsResult, PaginatedRequestParams, ToolAnnotations
from mcp_types import Tool as McpTool

from cru import __version__
from cru.core.tools.protocol import Tool
from cru.faces.mcp_server.calls import ClientCalls
from cru.faces.mcp_server.served_session import ServedSession

INSTRUCTIONS = (
    "Tools of cru, a command-line agent, for one project on this machine. Paths are relative to the project's root, and nothing outside "
    "of it can be reached.{vault} cru's rules and hooks judge each call; some need the leave of a person. send_prompt lets cru's own "
    "agent do a piece of work."
)
VAULT_INSTRUCTIONS = (
    " The vault_ tools are for the person's vault of Markdown notes; its paths are relative to that folder."
)


def make_server(served: ServedSession, calls: ClientCalls) -> Server[Any]:
    """The server for all transports."""

    async def list_tools(
        context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_describe(tool) for tool in served.tools()])

    return Server(
        "cru",
        version=__version__,
        title="cru",
        instructions=INSTRUCTIONS.format(vault=VAULT_INSTRUCTIONS if served.has_vault else ""),
        on_list_tools=list_tools,
        on_call_tool=calls.call,
    )


def _describe(tool: Tool) -> McpTool:
    spec = tool.spec
    annotations = ToolAnnotations(read_only_hint=tool.kind in ("read", "query"), open_world_hint=tool.kind == "fetch")
    return McpTool(
        name=spec.name, description=spec.description, input_schema=dict(spec.parameters), annotations=annotations
    )
