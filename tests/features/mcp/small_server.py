"""The small server of tests/programs/mcp, configured in a home."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.waiting import wait_until

SERVER = Path(__file__).parents[2] / "programs" / "mcp" / "server.py"


def stdio(name: str = "small", *options: str, **settings: object) -> str:
    """A table of config.toml for a server that is a program."""
    lines = [
        f"[mcp.servers.{name}]",
        f"command = {json.dumps(sys.executable)}",
        f"args = {json.dumps([str(SERVER), *options])}",
    ]
    return "\n".join([*lines, *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]) + "\n"


def at_url(url: str, name: str = "small", extra: str = "") -> str:
    return f'[mcp.servers.{name}]\nurl = "{url}"\n{extra}\n'


@contextmanager
def http_server(folder: Path, *options: str) -> Iterator[str]:
    """The server over HTTP; its URL."""
    port_file = folder / f"port{len(list(folder.glob('port*')))}"
    process = subprocess.Popen([sys.executable, str(SERVER), f"http={port_file}", *options], stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: port_file.exists() and port_file.read_text(), what="the server's port")
        yield f"http://127.0.0.1:{port_file.read_text()}/mcp"
    finally:
        process.kill()
        process.wait()
