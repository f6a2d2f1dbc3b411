"""Tools of MCP servers, as the turn sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cru.features.mcp.listing import RemoteTool
from cru.features.mcp.tools import McpTool


@pytest.mark.parametrize("reads_only", [True, False])
def test_only_what_a_server_calls_read_only_runs_beside_other_calls(reads_only: bool) -> None:
    settings = SimpleNamespace(server=SimpleNamespace(trust_read_only=False))
    server: Any = SimpleNamespace(name="small", definition=settings)
    assert McpTool(server, RemoteTool("echo", reads_only=reads_only)).parallel is reads_only
