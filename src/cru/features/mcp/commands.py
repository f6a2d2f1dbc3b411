"""/mcp: the MCP servers of this session."""

from __future__ import annotations

from cru.core.base.values.mcp_names import join_names
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.turn.commands import CommandResult
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.listing import ServerState, count_tools
from cru.features.mcp.pool import ServerPool, server_pool

NONE = "no MCP server is configured: `cru mcp add` adds one"


async def mcp(context: CommandContext, words: str) -> CommandResult:
    """All of them; `tools NAME`, `prompts NAME`, `resources NAME`; `restart NAME`. Raises BadCommand, McpError."""
    pool = server_pool(context.session.parts.services)
    if pool is None:
        return CommandResult(NONE)
    verb, _, name = words.strip().partition(" ")
    if not verb:
        return CommandResult("\n".join(map(_line, pool.servers)))
    if verb not in ("tools", "prompts", "resources", "restart"):
        raise BadCommand(f"/mcp does not know {words!r}", "/mcp, or /mcp tools|prompts|resources|restart NAME")
    if not name.strip():
        known = ", ".join(server.name for server in pool.servers)
        raise BadCommand(f"/mcp {verb} needs the name of a server", f"/mcp {verb} NAME: {known}")
    return CommandResult(await _show(pool, verb, name.strip()))


async def _show(pool: ServerPool, verb: str, name: str) -> str:
    server = pool.find(name)
    match verb:
        case "restart":
            await server.restart()
            return _line(server)
        case "tools":
            lines = [f"{join_names(name, tool.name)}  {_first(tool.description)}" for tool in server.facts.tools]
        case "prompts":
            lines = [f"/{name}:{prompt.name}  {_first(prompt.description)}" for prompt in await server.prompts()]
        case _:
            resources = await server.resources()
            lines = [
                f"@{name}:{resource.uri}  {_first(resource.description or resource.name)}" for resource in resources
            ]
    return "\n".join(lines) or f"{name} has no {verb}"


def _line(server: ServerConnection) -> str:
    facts = server.facts
    text = f"{server.name}  {facts.state.value}"
    if facts.state is ServerState.READY:
        return f"{text}: {count_tools(len(facts.tools))}, ready after {facts.seconds:.1f} s"
    if facts.why:
        return f"{text}: {facts.why}" + (f" ({facts.hint})" if facts.hint else "")
    return f"{text}; {count_tools(len(facts.tools))} when it was seen last" if facts.tools else text


def _first(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 120 else f"{line[:120]}…"
