"""cru's MCP client under the protocol's own conformance checker (`bench/install_peers.sh inspector` gets it from npm)."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from tests.faces.mcp_server.test_conformance import pytestmark as is_installed
from tests.faces.mcp_server.test_conformance import ran
from tests.kit import HomeDir
from tests.kit.run import program

pytestmark = is_installed
SCRIPT = """#!/bin/sh
set -e
{cru} mcp add checked --url "$1"
for tool in $({cru} mcp tools checked | grep ^mcp_ | cut -d' ' -f1); do {cru} -t -P $tool '{{"a": 5, "b": 3}}'; done
"""
"""What the checker starts as the client, with the server's address behind it."""


@pytest.mark.parametrize("scenario", ["initialize", "tools_call", "sse-retry"])
def test_the_conformance_checker_is_content(home: HomeDir, scenario: str) -> None:
    """The others need a person or a login, or are not about clients that only call tools."""
    client = Path(home.path / "client.sh")
    client.write_text(SCRIPT.format(cru=shlex.quote(str(program()))))
    os.chmod(client, 0o700)
    done = ran(home, "conformance", "client", "--command", str(client), "--scenario", scenario, "--timeout", "100000")
    assert done.returncode == 0 and "OVERALL: PASSED" in done.stdout + done.stderr, (done.stdout, done.stderr)
