"""`cru mcp list`."""

from __future__ import annotations

import time

import msgspec

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import complain, one_line, show
from cru.faces.cli.mcp.servers import KnownServers
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.listing import count_tools
from cru.features.mcp.listing_cache import CachedListing


def list_servers(servers: KnownServers, name: str, args: CommandArguments) -> int:
    """All of them, or one."""
    configured = servers.configured
    rows = [(d, servers.cache.load(d), "") for d in configured.definitions]
    rows += [(d, servers.cache.load(d), f"not accepted: cru mcp accept {d.name}") for d in configured.waiting]
    rows += [(d, servers.cache.load(d), "rejected") for d in configured.rejected]
    rows += [
        (d, servers.cache.load(d), "its name is taken by a server of cru's own settings") for d in configured.hidden
    ]
    rows = [row for row in rows if not name or row[0].name == name]
    if name and not rows:
        servers.find(name)
    if args.has("--json"):
        show(msgspec.json.encode([_record(*row) for row in rows]).decode())
    else:
        for row in rows:
            _show_row(*row, width=max(len(d.name) for d, _, _ in rows))
        if not rows:
            show("no MCP server is configured: cru mcp add NAME -- PROGRAM ARGS…")
    for text in configured.problems:
        complain(text)
    return 0


def _record(definition: ServerDefinition, known: CachedListing, judgement: str) -> dict[str, object]:
    last = known.last
    return {
        "name": definition.name, "state": _state(definition, known, judgement), "tools": [tool.name for tool in known.tools],
        "what": definition.describe(), "origin": definition.origin, "owner": definition.owner,
        "last": None if last is None else msgspec.to_builtins(last),
    }  # fmt: skip


def _show_row(definition: ServerDefinition, known: CachedListing, judgement: str, width: int) -> None:
    whose = "" if definition.owner == "cru" else f"{definition.owner}, "
    show(f"{definition.name:<{width}}  {one_line(_state(definition, known, judgement), 300)}")
    show(f"{'':<{width}}  {one_line(definition.describe(), 200)}  ({whose}{definition.origin})")


def _state(definition: ServerDefinition, known: CachedListing, judgement: str) -> str:
    if judgement:
        return judgement
    if not definition.server.enabled:
        return "off"
    last = known.last
    if last is None:
        return f"not started yet: cru mcp test {definition.name}"
    when = _ago(time.time() - last.at)
    if last.why:
        return f"does not work ({when}): {last.why}" + (f"; next: {last.hint}" if last.hint else "")
    return f"works: {count_tools(len(known.tools))}, ready after {last.seconds:.1f} s ({when})"


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"
