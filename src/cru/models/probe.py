"""Looking for a model server on this machine, when nothing is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from cru.models.providers import PROVIDERS, Provider
from cru.net.errors import NetError
from cru.net.transport import Transport

SECONDS = 0.2
SERVERS: tuple[Provider, ...] = (PROVIDERS["ollama"], PROVIDERS["lmstudio"])


class _Listed(Struct):
    id: str


class _List(Struct):
    data: list[_Listed] | None = None


class Found(Struct, frozen=True):
    """A server that answered, and the models that it offers (without those for embeddings)."""

    provider: Provider
    models: tuple[str, ...]


async def probe(servers: Sequence[Provider] = SERVERS) -> Found | None:
    """The first of the servers, in order, that lists a model within 200 ms."""
    transport = Transport(connect_timeout=SECONDS, idle_timeout=SECONDS)
    try:
        found = await asyncio.gather(*(_ask(transport, server) for server in servers))
    finally:
        await transport.close()
    return next((answer for answer in found if answer), None)


async def _ask(transport: Transport, server: Provider) -> Found | None:
    try:
        page = await transport.get(f"{server.base_url}/models", timeout=SECONDS, max_redirects=0)
        listed = msgspec.json.decode(page.body, type=_List).data if page.status == 200 else None
    except (NetError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # nobody there, or somebody else: not an answer
    models = tuple(model.id for model in listed or () if "embed" not in model.id)
    return Found(server, models) if models else None
