"""`cru mcp serve --http`: who may connect, and from where."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from tests.faces.mcp_server.serving import ERAS, Caller, Person
from tests.kit import HomeDir, cru, start

TOKEN = "0123456789abcdef0123"


@contextmanager
def listening(home: HomeDir, *words: str) -> Iterator[int]:
    """The port of a server for the block."""
    (home.project / ".git").mkdir(exist_ok=True)
    (home.project / "a.txt").write_text("hello\n")
    with start("mcp", "serve", "--http", *words, home=home) as run:
        run.wait_for("/mcp")
        yield int(run.err.rpartition("/mcp")[0].rpartition(":")[2])


def status(port: int, **headers: str) -> int:
    """The status of a request with these headers."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}})  # fmt: skip
    given = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/mcp", body, {**given, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
def test_a_client_calls_tools_and_its_person_is_asked(home: HomeDir, era: str) -> None:
    person = Person("once", "no")

    async def work(port: int) -> None:
        url = f"http://127.0.0.1:{port}/mcp"
        async with Client(url, elicitation_callback=person.elicit, mode=era) as client:
            call = Caller(client)
            assert await call("read", file_path="a.txt") == "     1\thello"
            assert (await call("write", file_path="b.txt", content="x")).startswith("Created")
            assert "The user refused" in await call("write", file_path="c.txt", content="x")

    with listening(home, "0") as port:
        asyncio.run(work(port))
    assert len(person.questions) == 2 and not (home.project / "c.txt").exists()


def test_names_and_pages_that_are_not_this_machines_are_refused(home: HomeDir) -> None:
    with listening(home, "0") as port:
        assert status(port) == 200
        assert status(port, host=f"localhost:{port}", origin=f"http://localhost:{port}") == 200
        for host in ("evil.example", f"evil.example:{port}", f"localhost:{port}.evil.example", "localhost:1"):
            assert status(port, host=host) == 421
        for origin in ("http://evil.example", "null", f"http://localhost:{port}.evil.example", "http://localhost:1"):
            assert status(port, origin=origin) == 403


def test_without_its_token_nothing_is_reached(home: HomeDir) -> None:
    (home.project / "token").write_text(f"{TOKEN}\n")
    words = ("0.0.0.0:0", "--token-file", "token", "--allow-host", "box.example,tunnel.example:9000")
    with listening(home, *words) as port:
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": TOKEN},
            {"authorization": f"Basic {TOKEN}"},
        ):
            assert status(port, **headers) == 401
        bearer = f"Bearer {TOKEN}"
        assert status(port, authorization=bearer) == 200
        for host in (f"box.example:{port}", "box.example", "tunnel.example:9000", f"localhost:{port}"):
            assert status(port, authorization=bearer, host=host, origin=f"https://{host}") == 200
        for host in ("evil.example", "tunnel.example", f"tunnel.example:{port}", "box.example:9000"):
            assert status(port, authorization=bearer, host=host) == 421


def test_a_token_of_the_environment_is_kept_from_tools(home: HomeDir) -> None:
    async def work(port: int) -> None:
        async with create_mcp_http_client(headers={"authorization": f"Bearer {TOKEN}"}) as client:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=client)
            async with Client(transport) as connected:
                assert TOKEN not in await Caller(connected)("bash", command="env")

    (home.project / "a.txt").write_text("hello\n")
    words = ("mcp", "serve", "-t", "--tools", "bash", "--http", "0")
    with start(*words, home=home, env={"CRU_MCP_TOKEN": TOKEN}) as run:
        run.wait_for("/mcp")
        asyncio.run(work(int(run.err.rpartition("/mcp")[0].rpartition(":")[2])))


def test_an_address_that_is_taken_is_told(home: HomeDir) -> None:
    with listening(home, "0") as port:
        done = cru("mcp", "serve", "--http", str(port), home=home)
    assert done.code == 1 and f"127.0.0.1:{port}: Address already in use" in done.err


def test_an_answer_to_a_call_that_nobody_made_is_refused(home: HomeDir) -> None:
    """From 2026-07-28 on a client makes a call again with the answer: only that very call, once."""

    async def work(port: int) -> None:
        async with Client(
            f"http://127.0.0.1:{port}/mcp", elicitation_callback=Person().elicit, mode="2026-07-28"
        ) as client:
            session = client.session
            args = {"file_path": "b.txt", "content": "x"}
            asked = await session.call_tool("write", args, allow_input_required=True)
            assert isinstance(asked, types.InputRequiredResult) and asked.request_state
            answers: types.InputResponses = {
                "permission": types.ElicitResult(action="accept", content={"decision": "once"})
            }

            async def again(state: str, **changed: str) -> object:
                return await session.call_tool(
                    "write", args | changed, input_responses=answers, request_state=state, allow_input_required=True
                )

            for state, changed in (("guessed", {}), (asked.request_state, {"content": "other"})):
                with pytest.raises(MCPError, match="no such call"):
                    await again(state, **changed)
            assert isinstance(await again(asked.request_state), types.CallToolResult)
            with pytest.raises(MCPError, match="no such call"):
                await again(asked.request_state)

    with listening(home, "0") as port:
        asyncio.run(work(port))
    assert (home.project / "b.txt").read_text() == "x"


def test_what_the_library_logs_has_no_control_characters_of_clients(home: HomeDir) -> None:
    (home.project / ".git").mkdir()
    with start("mcp", "serve", "--http", "0", home=home) as run:
        run.wait_for("/mcp")
        port = int(run.err.rpartition("/mcp")[0].rpartition(":")[2])
        assert status(port, Host="x\x1b[31m\x9b2J") == 421
        run.wait_for("Invalid Host")
        assert "\x1b" not in run.err and "\x9b" not in run.err
        assert all(line.startswith("cru mcp: ") for line in run.err.splitlines() if "Invalid" in line)
