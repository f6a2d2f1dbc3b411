"""`cru mcp test`, `tools`, `login` and `logout`: what starts a server, or asks one."""

from __future__ import annotations

import asyncio
import webbrowser

import msgspec

from cru.core.base.values.mcp_names import join_names
from cru.core.compose.sandbox import project_sandbox
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import complain, say, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.mcp.servers import KnownServers
from cru.features.mcp import BadServer, McpError
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.listing import ServerState, count_tools
from cru.features.mcp.ports import NoRequests

LOGIN_SECONDS = 330.0
"""For a person to come to an end with it."""


def test(servers: KnownServers, name: str, args: CommandArguments) -> int:
    """One server, or all; the exit status says whether all of them work."""
    chosen = [servers.find(name)] if name else servers.configured.definitions
    return int(not all([_test(servers, definition) for definition in chosen]))


def test_by_name(servers: KnownServers, name: str) -> bool:
    return _test(servers, servers.find(name))


def _test(servers: KnownServers, definition: ServerDefinition) -> bool:
    """Raises CruError only if it is interrupted."""
    server = run_interruptible(_start(servers, definition))
    facts = server.facts
    if facts.state is not ServerState.READY:
        complain(
            f"{definition.name} does not work: {facts.why}",
            "" if facts.hint.endswith(f"test {definition.name}") else facts.hint,
        )
        return False
    title = f" ({facts.title})" if facts.title else ""
    show(
        f"{definition.name}{title} works: {count_tools(len(facts.tools))}, ready after {facts.seconds:.1f} s, protocol {facts.version}"
    )
    for text in facts.left_out:
        say(f"cru: {definition.name}: {text}")
    return True


async def _start(servers: KnownServers, definition: ServerDefinition) -> ServerConnection:
    """Start it and end it; what it said stays in its facts and for the next run."""
    async with project_sandbox(servers.start, servers.settings, complain) as confine:
        place = msgspec.structs.replace(servers.place(), confine=confine, warn=complain)
        server = ServerConnection(definition, place, NoRequests(servers.start.root), lambda _: None)
        try:
            await server.wait_settled()
            facts = msgspec.structs.replace(server.facts)
            if facts.state in (ServerState.READY, ServerState.FAILED):
                _keep(servers, server)
        finally:
            await server.close()
    server.facts = facts
    return server


def _keep(servers: KnownServers, server: ServerConnection) -> None:
    try:
        servers.cache.save(server.definition, server.facts)
    except OSError as error:
        complain(f"what is known of {server.name} cannot be kept: {error.strerror}")


def tools(servers: KnownServers, name: str, args: CommandArguments) -> int:
    """As they were last seen; a server that was never started is started."""
    definition = servers.find(name)
    if servers.cache.load(definition).last is None and not _test(servers, definition):
        return 1
    listed = servers.cache.load(definition).tools
    if args.has("--json"):
        rows = [
            {**msgspec.to_builtins(tool), "name": join_names(name, tool.name), "own_name": tool.name} for tool in listed
        ]
        show(msgspec.json.encode(rows).decode())
        return 0
    for tool in listed:
        hint = "  (it says that it only reads)" if tool.reads_only else ""
        show(f"{join_names(name, tool.name)}{hint}")
        for line in tool.description.strip().splitlines()[:3]:
            show(f"    {line}")
    return 0


def login(servers: KnownServers, name: str, args: CommandArguments) -> int:
    """Raises McpError if the server has no address, or the login fails."""
    definition = servers.find(name)
    if definition.is_stdio:
        raise BadServer(f"{name} is a program: it logs in by itself, or by variables", f"mcp.servers.{name}.env")
    server = run_interruptible(_log_in(servers, definition))
    if server.facts.state is not ServerState.READY:
        raise McpError(f"{name} does not work: {server.facts.why}", server.facts.hint)
    show(f"you are logged in at {name}: {count_tools(len(server.facts.tools))}")
    return 0


async def _log_in(servers: KnownServers, definition: ServerDefinition) -> ServerConnection:
    from cru.features.mcp.oauth import LoginListener, make_auth
    from cru.features.mcp.references import expand
    from cru.features.mcp.sdk import load_sdk
    from cru.features.mcp.tokens import TokenStore

    await load_sdk()
    place = servers.place()
    url = expand(definition.server, place.env)[0].url
    store = TokenStore(servers.start.home, definition.name, url)
    async with LoginListener(store.load().port) as listener:
        store.remember_port(listener.port)
        auth = make_auth(url, store, listener.url, _tell, listener.wait)
        patient = msgspec.structs.replace(definition.server, start_timeout=LOGIN_SECONDS)
        server = ServerConnection(
            msgspec.structs.replace(definition, server=patient),
            place,
            NoRequests(servers.start.root),
            lambda _: None,
            auth,
        )
        try:
            await server.wait_settled()
            facts = msgspec.structs.replace(server.facts)
        finally:
            await server.close()
    server.facts, server.definition = facts, definition
    if facts.state is ServerState.READY:
        store.remember_authority(auth.context.oauth_metadata)
        _keep(servers, server)
    return server


async def _tell(url: str) -> None:
    """Name the address, and open it where there is a browser."""
    say(f"log in here: {url}")
    await asyncio.to_thread(webbrowser.open, url)


def logout(servers: KnownServers, name: str, args: CommandArguments) -> int:
    from cru.features.mcp.references import expand
    from cru.features.mcp.tokens import TokenStore

    definition = servers.find(name)
    url = expand(definition.server, servers.start.env)[0].url
    known = TokenStore(servers.start.home, name, url).forget()
    show(f"the login at {name} is forgotten" if known else f"there is no login at {name}")
    return 0
