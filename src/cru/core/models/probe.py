"""Looking at the model servers of this machine: when nothing is configured, and before a model of theirs is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from cru.core.base.config.closest import closest
from cru.core.base.net import NetError, TimeLimits
from cru.core.base.net.transport import Transport
from cru.core.models.protocol import NoModel
from cru.core.models.providers import PROVIDERS, USUAL_PORTS, Provider

SECONDS = 0.2
SERVERS: tuple[Provider, ...] = (PROVIDERS["ollama"], PROVIDERS["lmstudio"])
"""Those that are used without asking if nothing is configured."""
ALL_SERVERS: tuple[Provider, ...] = (*SERVERS, *(PROVIDERS[name] for name in USUAL_PORTS))


class _ServerModel(Struct):
    id: str


class _ServerModelList(Struct):
    data: list[_ServerModel] | None = None


class ModelServer(Struct, frozen=True):
    """A server of this machine that answered.

    provider: its row
    models: what it offers, without models for embeddings
    """

    provider: Provider
    models: tuple[str, ...]


async def probe(servers: Sequence[Provider] = SERVERS) -> ModelServer | None:
    """The first of the servers, in order, that lists a model within 200 ms."""
    return next(iter(await find_servers(servers)), None)


async def find_servers(servers: Sequence[Provider]) -> tuple[ModelServer, ...]:
    """Those of the servers that list a model within 200 ms, in order; all are asked at once."""
    transport = Transport(TimeLimits(SECONDS, SECONDS, SECONDS))
    try:
        answers = await asyncio.gather(*(_ask(transport, server) for server in servers))
    finally:
        await transport.close()
    return tuple(answer for answer in answers if answer)


async def _ask(transport: Transport, server: Provider) -> ModelServer | None:
    try:
        page = await transport.get(f"{server.base_url}/models", timeout=SECONDS, max_redirects=0)
        listed = msgspec.json.decode(page.body, type=_ServerModelList).data if page.status == 200 else None
    except (NetError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # nobody there, or somebody else: not an answer
    models = tuple(model.id for model in listed or () if "embed" not in model.id)
    return ModelServer(server, models) if models else None


async def require_listed(provider: str, model: str, base_url: str) -> None:
    """Whether the server of this machine that a kept model would be asked of is there and has it. Servers elsewhere, and those that take
    names which they do not list, are not asked. Raises NoModel."""
    server = next((known for known in SERVERS if known.name == provider and known.base_url == base_url), None)
    if server is None:
        return
    answer = await probe([server])
    if answer is None:
        raise NoModel(
            f"{provider} does not answer at {base_url}, or has no model",
            f"start it and try again; for one run that is not checked: -s model={provider}:{model}; to keep it all the same, write "
            "`model` into the context's local.toml",
        )
    if model in answer.models or f"{model}:latest" in answer.models:
        return
    near = closest(model, answer.models)
    hint = f"did you mean {provider}:{near}?" if near else f"it has {', '.join(answer.models[:8])}"
    raise NoModel(f"{provider} here has no model {model}", hint)
