"""The way to a server, as its definition says: a program here, or an address."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from cru.core.base.process.confined import ProjectProgram, describe_put_aside
from cru.features.mcp import BadServer, ServerUnavailable
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.http import HttpTransport
from cru.features.mcp.place import ServerPlace
from cru.features.mcp.references import expand
from cru.features.mcp.stdio import StdioTransport

if TYPE_CHECKING:
    from cru.core.base.process.confined import PreparedCommand


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


async def _confine(place: ServerPlace, name: str, program: ProjectProgram) -> PreparedCommand | None:
    """What runs the server in the sandbox; what it must not make is put aside at its end, and told."""
    assert place.confine is not None
    confined = await place.confine(program)
    if confined is None:
        return None
    settle = confined.settle

    def settle_and_tell() -> list[str]:
        paths = settle()
        if paths:
            place.warn(f"MCP server {name}: {describe_put_aside(paths)}")
        return paths

    return replace(confined, settle=settle_and_tell)


def make_transport(definition: ServerDefinition, place: ServerPlace, auth: Any = None) -> ServerTransport:
    """auth: what logs in at an address, if not what was kept. Raises BadServer."""
    server, secrets = expand(definition.server, place.env)
    if server.command:
        cwd = place.root / Path(server.cwd).expanduser()
        env = {**place.env_of_program(of_project=definition.of_project), **server.env}
        argv = (server.command, *server.args)
        if not definition.of_project or place.confine is None:
            return StdioTransport(argv, cwd, env, secrets)
        program = ProjectProgram(argv, str(cwd))
        return StdioTransport(argv, cwd, env, secrets, partial(_confine, place, definition.name, program))
    if why := place.why_not(server.url):
        raise BadServer(f"{definition.describe()} is forbidden by {why}")
    return HttpTransport(definition, server, place, secrets, auth)
