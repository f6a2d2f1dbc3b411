"""The official SDK, loaded when a server is to be used and not before: it takes about a second."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec

from cru.features.mcp import SdkMissing

HINT = "pip install 'cru[mcp]'"
MODULES = ("mcp.client.client", "mcp.client.streamable_http", "mcp_types", "jsonschema")


LOGGERS = ("mcp", "httpx2", "httpcore2")


def find_missing_sdk() -> str:
    """Return a library that MCP servers need and that is not installed, without loading any; "" if all are there."""
    return next(
        (name for name in dict.fromkeys(module.partition(".")[0] for module in MODULES) if find_spec(name) is None), ""
    )


async def load_sdk() -> None:
    """In a thread, so that what runs goes on. Raises SdkMissing."""
    await asyncio.to_thread(_load)


def _load() -> None:
    try:
        for name in MODULES:
            import_module(name)
    except ImportError as error:
        raise SdkMissing(f"MCP servers need a library that is not installed ({error.name or error})", HINT) from error
    for name in LOGGERS:  # what they log would stand in the face's output, secrets and all
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.addHandler(logging.NullHandler())


class Attempt:
    """What a transport has seen of one request and the SDK's errors do not tell.

    is_forgotten: the server did not look at the request, since it does not know the session any more
    """

    def __init__(self) -> None:
        self.is_forgotten = False


ATTEMPT: ContextVar[Attempt | None] = ContextVar("mcp_attempt", default=None)
"""The attempt of the request that is being sent: the SDK runs a transport in the context of its caller."""
