"""Servers of the Model Context Protocol as sources of tools, resources and prompts: their settings, and what can go wrong with them.

McpError
├── SdkMissing       the SDK is not installed
├── BadServer        a definition that cannot be used: no command and no url, a variable that is not set, …
├── ServerUnavailable     it is switched off, did not start, or is gone
│   ├── UnknownServer    there is none of that name
│   └── SessionForgotten it does not know the session any more, and did nothing
├── CallTimeout      it did not answer in time
└── RequestFailed       it answered with an error, or with what is no answer
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cru.core.base.values.errors import CruError


class McpError(CruError):
    pass


class SdkMissing(McpError):
    pass


class BadServer(McpError):
    pass


class ServerUnavailable(McpError):
    pass


class UnknownServer(ServerUnavailable):
    pass


class SessionForgotten(ServerUnavailable):
    pass


class CallTimeout(McpError):
    pass


class RequestFailed(McpError):
    pass


class McpServer(Struct, frozen=True):
    """`[mcp.servers.NAME]`: a program (command, …) or an address (url, …). Times are seconds."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    enabled: bool = True
    allow_tools: tuple[str, ...] = ("*",)
    deny_tools: tuple[str, ...] = ()
    trust_read_only: bool = False
    start_timeout: Annotated[float, Meta(gt=0)] = 30.0
    call_timeout: Annotated[float, Meta(gt=0)] = 300.0


class McpSettings(Struct, frozen=True):
    """`[mcp]`."""

    servers: dict[str, McpServer] = {}
    search_percent: Annotated[float, Meta(ge=0, le=100)] = 15.0


class McpTable(Struct, frozen=True):
    """The settings of this room."""

    mcp: McpSettings = McpSettings()


DOCS: dict[str, str] = {
    "mcp": "[MCP servers](mcp.md), whose tools the model gets; a project's are ignored until it is trusted",
    "mcp.servers": "by name",
    "mcp.servers.NAME.command": "the program of a server that is started here",
    "mcp.servers.NAME.args": "its arguments",
    "mcp.servers.NAME.env": "its variables, beside those of all tools; `${NAME}` is a variable of cru's own environment, "
    "`${NAME:-text}` has a default. So it is in all texts of a server",
    "mcp.servers.NAME.cwd": "the folder that it runs in; default: the project root",
    "mcp.servers.NAME.url": "the address of a server that runs elsewhere (streamable HTTP)",
    "mcp.servers.NAME.headers": "headers of every request to it",
    "mcp.servers.NAME.enabled": "whether it is used",
    "mcp.servers.NAME.allow_tools": "globs of its own names of tools; the others are left out",
    "mcp.servers.NAME.deny_tools": "globs of tools that are left out all the same",
    "mcp.servers.NAME.trust_read_only": "whether tools that it calls read-only need no question",
    "mcp.servers.NAME.start_timeout": "seconds until it must have answered",
    "mcp.servers.NAME.call_timeout": "seconds that a call may take",
    "mcp.search_percent": "percent of the model's window from which on schemas of tools are not sent: the model searches for tools then",
}
