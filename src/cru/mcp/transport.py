"""The way to a server, as its definition says: a program here, or an address."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

from cru.mcp import BadServer, ServerUnavailable
from cru.mcp.definition import ServerDefinition
from cru.mcp.place import ServerPlace
from cru.mcp.references import expand


class ServerTransport(Protocol):
    """A way to a server.

    ended: set when it is gone
    secrets: what must not be shown of it
    problems: what was left out of its answers
    refusal: why the server does not talk to us, if it has said so
    """

    ended: asyncio.Event
    secrets: set[str]
    problems: list[str]
    refusal: ServerUnavailable | None

    @property
    def streams(self) -> Any:
        """What the SDK's client enters."""
        ...

    def describe_end(self) -> str:
        """How it ended, in words; "" if that is not known, or was our doing."""
        ...

    async def wait_end(self) -> str:
        """The same, as soon as it is known."""
        ...

    def last_words(self) -> str:
        """What it printed last beside its answers."""
        ...


def make_transport(definition: ServerDefinition, place: ServerPlace, auth: Any = None) -> ServerTransport:
    """auth: what logs in at an address, if not what was kept. Raises BadServer."""
    server, secrets = expand(definition.server, place.env)
    if server.command:
        from cru.mcp.stdio import StdioTransport

        cwd = place.root / Path(server.cwd).expanduser()
        env = {**place.env_of_program(of_project=definition.of_project), **server.env}
        return StdioTransport((server.command, *server.args), cwd, env, secrets)
    if why := place.why_not(server.url):
        raise BadServer(f"{definition.describe()} is forbidden by {why}")
    from cru.mcp.http import HttpTransport

    return HttpTransport(definition, server, place, secrets, auth)
