"""`cru mcp accept` and `cru mcp reject`: servers of other programs' settings."""

from __future__ import annotations

from typing import Literal

from cru.core.base.config.closest import did_you_mean
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import show
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.mcp.servers import KnownServers
from cru.features.mcp import UnknownServer
from cru.features.mcp.accepted import AcceptedServers
from cru.features.mcp.definition import ServerDefinition


def accept(servers: KnownServers, name: str, args: CommandArguments) -> int:
    """Raises UnknownServer, McpError."""
    return _judge(servers, name, args, "accepted")


def reject(servers: KnownServers, name: str, args: CommandArguments) -> int:
    """Raises UnknownServer, McpError."""
    return _judge(servers, name, args, "rejected")


def _judge(servers: KnownServers, name: str, args: CommandArguments, decision: Literal["accepted", "rejected"]) -> int:
    if bool(name) == args.has("--all"):
        raise UsageProblem(
            f"`cru mcp {args.words[0]}` needs the name of a server, or --all", "cru mcp says which there are"
        )
    store = AcceptedServers(servers.start.home)
    for definition in _chosen(servers, name):
        store.judge(definition, decision)
        show(f"{definition.name} of {definition.origin} is {decision}: {definition.describe()}")
    return 0


def _chosen(servers: KnownServers, name: str) -> list[ServerDefinition]:
    configured = servers.configured
    if not name:
        return configured.waiting
    foreign = [d for d in (*configured.waiting, *configured.rejected, *configured.definitions) if d.owner != "cru"]
    chosen = [d for d in foreign if d.name == name]
    if not chosen:
        hint = did_you_mean(name, [d.name for d in foreign]) or "cru mcp says which there are"
        raise UnknownServer(f"no other program's settings have an MCP server {name}", hint)
    return chosen
