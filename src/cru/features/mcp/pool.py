"""The servers of a session: started together, asked by name, ended with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from cru.core.base.config.closest import did_you_mean
from cru.core.turn.parts import SessionServices
from cru.features.mcp import UnknownServer
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.place import ServerPlace
from cru.features.mcp.ports import ServerRequests

if TYPE_CHECKING:
    pass


class ServerPool:
    """`changed` hears of each change of a server."""

    def __init__(
        self,
        definitions: Iterable[ServerDefinition],
        place: ServerPlace,
        requests: ServerRequests,
        changed: Callable[[ServerConnection], None] = lambda server: None,
    ) -> None:
        self._servers = {d.name: ServerConnection(d, place, requests, changed) for d in definitions}

    @property
    def servers(self) -> tuple[ServerConnection, ...]:
        """In the order of their names."""
        return tuple(self._servers[name] for name in sorted(self._servers))

    def find(self, name: str) -> ServerConnection:
        """Raises UnknownServer with the nearest name."""
        server = self._servers.get(name)
        if server is None:
            known = ", ".join(self._servers) or "none is configured: cru mcp add"
            raise UnknownServer(f"there is no MCP server {name}", did_you_mean(name, self._servers) or known)
        return server

    def start(self) -> None:
        for server in self._servers.values():
            server.start()

    async def wait_settled(self, seconds: float | None = None) -> None:
        """Until each is ready or has failed, at most so long."""
        await asyncio.gather(*(server.wait_settled(seconds) for server in self._servers.values()))

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))


def server_pool(services: SessionServices) -> ServerPool | None:
    """The servers of a session, if some are configured."""
    pool = services.features.get("mcp")
    return pool if isinstance(pool, ServerPool) else None
