"""A call's time does not run while a person is asked."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.features.mcp.small_server import SERVER

from cru.features.mcp import CallTimeout, McpServer
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.place import ServerPlace
from cru.features.mcp.ports import Elicitation, NoRequests

LIMIT = 0.5


class SlowPerson(NoRequests):
    async def elicit(self, request: Elicitation) -> dict[str, Any] | None:
        await asyncio.sleep(2 * LIMIT)
        return {"color": "red"}


async def _call(tmp_path: Path, tool: str) -> str:
    server = McpServer(sys.executable, (str(SERVER),), call_timeout=LIMIT)
    place = ServerPlace(tmp_path, tmp_path, os.environ, os.environ)
    connection = ServerConnection(ServerDefinition("small", server), place, SlowPerson(tmp_path), lambda _: None)

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        pass

    try:
        await connection.wait_settled()
        return (await connection.call(tool, {}, lambda data, suffix: None, tell)).text
    finally:
        await connection.close()


def test_a_person_may_take_longer_than_a_call(tmp_path: Path) -> None:
    assert '"red"' in asyncio.run(_call(tmp_path, "ask"))


def test_a_server_may_not(tmp_path: Path) -> None:
    with pytest.raises(CallTimeout, match=r"did not answer within 0\.5 s"):
        asyncio.run(_call(tmp_path, "hang"))
