"""Servers that are programs, in bad weather: floods, lines without end, answers that are none. The client is cru's."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.features.mcp.scripted_http import call, connected
from tests.kit.waiting import PATIENCE

from cru.features.mcp import CallTimeout, McpError, McpServer, RequestFailed, ServerUnavailable, limits, stdio
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.listing import ServerState

PROGRAM = """
import json, os, sys, time

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + chr(10))
    sys.stdout.flush()

def text(number, words):
    send(id=number, result={"content": [{"type": "text", "text": words}]})

calls = 0
for line in sys.stdin:
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    if method == "initialize":
        info = {"name": "x", "version": "1"}
        send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=number, result={"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        calls += 1
        if calls > 1 or os.path.exists("mended"):
            text(number, "worked")
            continue
        open("mended", "w").close()
        BODY
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "unknown"})
"""


def use(
    folder: Path, body: str, work: Callable[[ServerConnection], Awaitable[None]], call_timeout: float = PATIENCE
) -> None:
    async def run() -> None:
        program = PROGRAM.replace("BODY", body.replace("\n", "\n        "))
        server = McpServer(command=sys.executable, args=("-c", program), call_timeout=call_timeout)
        async with connected(server, folder) as connection:
            assert connection.facts.state is ServerState.READY, connection.facts
            await work(connection)

    asyncio.run(run())


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        ("sys.stdout.write('{\"jsonrpc\": \"2.0\", \"id\"')\nsys.stdout.flush()\nos._exit(3)", ServerUnavailable, "exit code 3"),
        ("os.close(1)\ntime.sleep(60)", ServerUnavailable, "may have run"),
        ("send(id=number, result=7)", RequestFailed, "cannot be read"),
        ("os.write(1, b'{\"id\": %d, \"result\": {\"content\": [}}\\n' % number)", RequestFailed, "cannot be read"),
        ("os.write(1, b'{\"result\": {\"id\": 1, \"a\": }, \"id\": %d}\\n' % number)", RequestFailed, "cannot be read"),
        ("send(id=number, result={'content': [{'type': 'banana'}]})", RequestFailed, "not of the protocol"),
        ("send(id=number, error={'code': -32000, 'message': 'no\\x1b[2J'})", RequestFailed, "no\\x1b[2J"),
        ("send(id=number + 100, result={})\nprint('no message')\nsend(id=None, result={})", CallTimeout, "within 1 s"),
    ],
    ids=["dies in an answer", "closes its output", "a number", "no JSON", "no JSON, its id behind", "a banana", "an error", "another id"],
)  # fmt: skip
def test_an_answer_that_is_none_ends_the_call_and_the_next_one_works(
    tmp_path: Path, body: str, error: type[McpError], says: str
) -> None:
    async def work(connection: ServerConnection) -> None:
        with pytest.raises(error) as caught:
            await call(connection)
        assert says in str(caught.value)
        assert await call(connection) == "worked"

    use(tmp_path, body, work, call_timeout=1 if error is CallTimeout else PATIENCE)


def test_a_stopped_server_costs_its_time_limit_once_and_works_again_when_it_is_back(tmp_path: Path) -> None:
    async def work(connection: ServerConnection) -> None:
        with pytest.raises(CallTimeout, match="within 1 s"):
            await call(connection)
        for _ in range(2):
            with pytest.raises(CallTimeout, match="still does not answer since a call of it timed out"):
                await call(connection)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGCONT)
        assert await call(connection) == "worked"

    body = "open('pid', 'w').write(str(os.getpid()))\nos.kill(os.getpid(), 19)"
    use(tmp_path, body, work, call_timeout=1)


def test_a_line_without_end_ends_the_connection_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(connection: ServerConnection) -> None:
        with pytest.raises(ServerUnavailable, match="may have run"):
            await call(connection)
        await asyncio.wait_for(connection._settled.wait(), PATIENCE)
        assert "a message is longer than 1,000,000 bytes" in connection.facts.why
        assert await call(connection) == "worked"

    monkeypatch.setattr(stdio, "LONGEST_LINE", 1_000_000)
    use(tmp_path, "while True: sys.stdout.write('x' * 65536)", work)


@pytest.mark.slow
def test_a_flood_without_end_ends_the_connection_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(connection: ServerConnection) -> None:
        with pytest.raises(ServerUnavailable, match="may have run"):
            await call(connection)
        await asyncio.wait_for(connection._settled.wait(), PATIENCE)
        assert connection.facts.state is ServerState.FAILED and "notifications without end" in connection.facts.why
        assert await call(connection) == "worked"

    monkeypatch.setattr(limits, "LONGEST", 0.3)
    use(tmp_path, "while True: send(method='notifications/message', params={'level': 'info', 'data': 'x'})", work)
