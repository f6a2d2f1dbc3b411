"""`cru mcp serve` under programs that are not ours: the protocol's conformance checker and the official inspector's command line.
`bench/install_peers.sh inspector` gets both from npm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faces.mcp_server.test_http import listening
from tests.features.vault.support import write_notes
from tests.kit import HomeDir
from tests.kit.run import program

BENCH = Path(os.environ.get("BENCH_HOME") or Path.home() / ".cache" / "cru-bench")
BIN = BENCH / "npm" / "inspector" / "node_modules" / ".bin"
NODE = shutil.which("node", path=os.pathsep.join((str(BENCH / "bin"), os.environ.get("PATH", ""))))
pytestmark = [
    pytest.mark.real_start,
    pytest.mark.skipif(
        NODE is None or not (BIN / "conformance").exists(),
        reason="the inspector and the conformance checker are not installed: bench/install_peers.sh inspector",
    ),
]
SCENARIOS = ("server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection")
"""Those that every server must pass: the others call tools, prompts and resources of a server that is made for them."""


@pytest.fixture
def here(home: HomeDir) -> HomeDir:
    write_notes(home.path / "notes", {"Home.md": "a growing pause\n"})
    home.configure(f'[vault]\npath = "{home.path}/notes"\n')
    return home


@pytest.fixture
def port(here: HomeDir) -> Iterator[int]:
    with listening(here, "0") as number:
        yield number


def ran(here: HomeDir, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """One of the two programs, to its end."""
    env = {**here.env, "PATH": f"{BENCH / 'bin'}{os.pathsep}{here.env['PATH']}"}
    command = [str(NODE), str(BIN / name), *words]
    return subprocess.run(command, env=env, cwd=here.project, capture_output=True, text=True, timeout=120)


def inspect(here: HomeDir, *words: str) -> str:
    done = ran(here, "mcp-inspector", "--cli", *words)
    return done.stdout + done.stderr


def test_the_conformance_checker_is_content(here: HomeDir, port: int) -> None:
    for scenario in SCENARIOS:
        done = ran(here, "conformance", "server", "--url", f"http://127.0.0.1:{port}/mcp", "--scenario", scenario)
        assert done.returncode == 0, (scenario, done.stdout, done.stderr)


def test_the_inspector_lists_and_calls_tools_over_http(here: HomeDir, port: int) -> None:
    where = (f"http://127.0.0.1:{port}/mcp", "--transport", "http")
    listed = json.loads(inspect(here, *where, "--method", "tools/list"))["tools"]
    assert {"read", "send_prompt", "vault_search"} <= {tool["name"] for tool in listed}
    call = (*where, "--method", "tools/call", "--tool-name")
    assert "**growing** pause" in inspect(here, *call, "vault_search", "--tool-arg", "query=growing")
    assert "nobody can be asked" in inspect(here, *call, "write", "--tool-arg", "file_path=b.txt", "content=x")
    assert not (here.project / "b.txt").exists()


def test_the_inspector_starts_the_server_and_calls_it(here: HomeDir) -> None:
    (here.project / ".git").mkdir()
    servers = here.path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"cru": {"command": str(program()), "args": ["mcp", "serve"]}}}))
    call = ("--config", str(servers), "--server", "cru", "--method", "tools/call", "--tool-name")
    assert "a growing pause" in inspect(here, *call, "vault_read", "--tool-arg", "path=Home")
