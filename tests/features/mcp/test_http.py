"""Servers over HTTP in bad weather: what they forget, refuse, break off and never end. The client is cru's, the server real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.features.mcp.scripted_http import Exchange, Rule, ScriptedServer, call, connected, scripted
from tests.kit.waiting import PATIENCE

from cru.features.mcp import CallTimeout, McpError, McpServer, RequestFailed, ServerUnavailable, limits
from cru.features.mcp import http as mcp_http
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.listing import ServerState

Work = Callable[[ServerConnection, ScriptedServer], Awaitable[None]]


def use(folder: Path, rule: Rule, work: Work, *, session: str = "", call_timeout: float = PATIENCE) -> None:
    with scripted(rule) as server:
        server.session = session

        async def run() -> None:
            async with connected(McpServer(url=server.url, call_timeout=call_timeout), folder) as connection:
                assert connection.facts.state is ServerState.READY, connection.facts
                await work(connection, server)

        asyncio.run(run())


def honest(_: Exchange) -> bool:
    return False


@pytest.mark.sample(1)
@pytest.mark.parametrize("has_body", [False, True])
def test_a_server_that_has_forgotten_the_session_gets_a_new_one_and_the_call_once_more(
    tmp_path: Path, has_body: bool
) -> None:
    def rule(exchange: Exchange) -> bool:
        """Sessions other than the server's own are not known."""
        given = exchange.headers.get("mcp-session-id")
        if given in (None, exchange.server.session):
            return False
        if has_body:
            exchange.error(-32600, "Session not found", 404)
        else:
            exchange.status(404)
        return True

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        assert await call(connection) == "worked"
        server.session = "second"
        answers = await asyncio.gather(*(call(connection) for _ in range(3)))
        assert answers == ["worked"] * 3
        assert server.seen.count("initialize") == 2 and connection.facts.state is ServerState.READY
        assert connection.facts.starts == 2

    use(tmp_path, rule, work, session="first")


def test_a_server_that_forgets_every_session_is_asked_twice_and_no_more(tmp_path: Path) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.is_call:
            exchange.status(404)
        return exchange.is_call

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        with pytest.raises(ServerUnavailable, match="forgets its sessions"):
            await call(connection)
        assert server.calls() == 2

    use(tmp_path, rule, work, session="first")


def test_a_status_404_without_a_session_is_told_and_nothing_is_repeated(tmp_path: Path) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.is_call:
            exchange.status(404)
        return exchange.is_call

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        with pytest.raises(ServerUnavailable, match="status 404"):
            await call(connection)
        assert server.calls() == 1

    use(tmp_path, rule, work)


def test_a_login_that_has_run_out_is_told_and_works_again_when_it_is_back(tmp_path: Path) -> None:
    def rule(exchange: Exchange) -> bool:
        refused = exchange.is_call and exchange.server.calls() == 2
        if refused:
            exchange.status(401, headers={"www-authenticate": "Bearer"})
        return refused

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        assert await call(connection) == "worked"
        with pytest.raises(ServerUnavailable) as caught:
            await call(connection)
        assert "log" in caught.value.message and "cru mcp login small" in caught.value.hint
        assert await call(connection) == "worked"
        assert server.seen.count("initialize") == 1

    use(tmp_path, rule, work)


def cut_events(exchange: Exchange) -> None:
    exchange.stream()
    exchange.wfile.write(b'event: message\ndata: {"jsonrpc": "2.0", "id"')


def cut_json(exchange: Exchange) -> None:
    exchange.head(200, {"content-type": "application/json", "content-length": "1000"})
    exchange.wfile.write(b'{"jsonrpc": "2.0"')
    exchange.close_connection = True


def no_event(exchange: Exchange) -> None:
    exchange.stream()


def hang_up(exchange: Exchange) -> None:
    exchange.close_connection = True


def no_json(exchange: Exchange) -> None:
    exchange.status(200, b"{]", {"content-type": "application/json"})


def a_page(exchange: Exchange) -> None:
    exchange.status(200, b"<html>", {"content-type": "text/html"})


def compressed(exchange: Exchange) -> None:
    exchange.status(200, b"\x1f\x8b", {"content-type": "application/json", "content-encoding": "gzip"})


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (cut_events, "it may have run"),
        (cut_json, "peer closed connection"),
        (no_event, "it may have run"),
        (hang_up, "it may have run"),
        (no_json, "Failed to parse JSON"),
        (a_page, "Unexpected content type"),
        (compressed, "it compresses its answers (gzip)"),
        (lambda exchange: exchange.status(500), "error"),
        (lambda exchange: exchange.status(202), "202"),
    ],
)
def test_an_answer_that_is_none_is_the_end_of_the_call_and_not_of_the_server(
    tmp_path: Path, answer: Callable[[Exchange], None], says: str
) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.is_call and exchange.server.calls() == 1:
            answer(exchange)
            return True
        return False

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        with pytest.raises(McpError) as caught:
            await call(connection)
        assert says in str(caught.value) and "Traceback" not in str(caught.value)
        assert server.calls() == 1
        assert await call(connection) == "worked"

    use(tmp_path, rule, work)


def long_json(exchange: Exchange) -> None:
    exchange.stream("application/json")
    while True:
        exchange.wfile.write(b" " * 65_536)


def long_line(exchange: Exchange) -> None:
    exchange.stream()
    exchange.wfile.write(b"data: ")
    while True:
        exchange.wfile.write(b"x" * 65_536)


def comments(exchange: Exchange) -> None:
    exchange.stream()
    while True:
        exchange.wfile.write(b": nothing yet\n\n" * 1000)


@pytest.mark.parametrize("answer", [long_json, long_line, comments])
def test_an_answer_without_end_has_one_here(
    tmp_path: Path, answer: Callable[[Exchange], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.is_call and exchange.server.calls() == 1:
            answer(exchange)
            return True
        return False

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        with pytest.raises(RequestFailed, match=r"longer than 1,000,000 bytes|exceeded the 1000000 byte limit"):
            await call(connection)
        assert await call(connection) == "worked"

    monkeypatch.setattr(mcp_http, "LARGEST_EVENT", 1_000_000)
    use(tmp_path, rule, work)


@pytest.mark.slow
@pytest.mark.parametrize("is_event", [False, True])
def test_ten_megabytes_are_a_result(tmp_path: Path, is_event: bool) -> None:
    text = "0123456789" * 1_000_000

    def rule(exchange: Exchange) -> bool:
        if exchange.is_call and is_event:
            exchange.stream()
            result = {"content": [{"type": "text", "text": text}]}
            exchange.event({"id": exchange.message["id"], "result": result})
        elif exchange.is_call:
            exchange.text(text)
        return exchange.is_call

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        assert await call(connection) == text

    use(tmp_path, rule, work)


def test_an_answer_that_never_comes_ends_with_its_time(tmp_path: Path) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.is_call and exchange.server.calls() == 1:
            exchange.stream()
            exchange.wfile.write(b": wait\n\n")
            exchange.rfile.read(1)  # until the client hangs up
            return True
        return False

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        with pytest.raises(CallTimeout):
            await call(connection)
        assert await call(connection) == "worked"

    use(tmp_path, rule, work, call_timeout=0.5)


def notify(exchange: Exchange, count: int) -> None:
    params = {"level": "info", "data": "x"}
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    for _ in range(count // 100):
        exchange.wfile.write(f"data: {line}\n\n".encode() * 100)


@pytest.mark.slow
def test_a_flood_of_notifications_is_not_heard_and_its_result_is(tmp_path: Path) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.is_call:
            exchange.stream()
            notify(exchange, 3_000)
            exchange.event({"id": exchange.message["id"], "result": {"content": [{"type": "text", "text": "flooded"}]}})
        return exchange.is_call

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        assert await call(connection) == "flooded"

    use(tmp_path, rule, work)


@pytest.mark.slow
def test_a_flood_without_end_ends_the_connection_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.is_call and exchange.server.calls() == 1:
            exchange.stream()
            while True:
                notify(exchange, 1000)
        return False

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        with pytest.raises(ServerUnavailable, match="may have run"):
            await call(connection)
        await asyncio.wait_for(connection._settled.wait(), PATIENCE)
        assert connection.facts.state is ServerState.FAILED and "notifications without end" in connection.facts.why
        assert await call(connection) == "worked"  # it is started again when somebody wants it

    monkeypatch.setattr(limits, "LONGEST", 0.3)
    use(tmp_path, rule, work)


def test_tools_that_change_in_the_middle_are_listed_again(tmp_path: Path) -> None:
    listed = [{"name": "work", "inputSchema": {"type": "object"}}]

    def rule(exchange: Exchange) -> bool:
        if exchange.message.get("method") == "tools/list":
            exchange.result({"tools": listed})
            return True
        if exchange.is_call:
            listed.append({"name": "late", "inputSchema": {"type": "object"}})
            exchange.stream()
            exchange.event({"method": "notifications/tools/list_changed"})
            exchange.event({"id": exchange.message["id"], "result": {"content": []}})
        return exchange.is_call

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        await call(connection)
        async with asyncio.timeout(PATIENCE):
            while len(connection.facts.tools) < 2:
                await asyncio.sleep(0.01)
        assert sorted(tool.name for tool in connection.facts.tools) == ["late", "work"]

    use(tmp_path, rule, work)


def test_a_protocol_version_that_nobody_speaks_is_told(tmp_path: Path) -> None:
    def rule(exchange: Exchange) -> bool:
        if exchange.message.get("method") != "initialize":
            return False
        exchange.result(
            {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        )
        return True

    async def run(url: str) -> None:
        async with connected(McpServer(url=url), tmp_path) as connection:
            assert connection.facts.state is ServerState.FAILED
            assert "Unsupported protocol version" in connection.facts.why

    with scripted(rule) as server:
        asyncio.run(run(server.url))


def tasks(exchange: Exchange) -> bool:
    """A server whose tool is a task only; its result is there, unless the task is to go on for ever."""
    task = {"taskId": "7", "status": "working", "createdAt": "2026-01-01", "lastUpdatedAt": "2026-01-01", "ttl": None}
    match exchange.message.get("method"):
        case "tools/list":
            schema = {"type": "object"}
            exchange.result(
                {"tools": [{"name": "work", "inputSchema": schema, "execution": {"taskSupport": "required"}}]}
            )
        case "tools/call":
            assert "task" in exchange.message["params"]
            exchange.result({"task": task})
        case "tasks/result" if exchange.server.session == "slow":
            exchange.stream()
            exchange.rfile.read(1)  # until the client hangs up
        case "tasks/result":
            assert exchange.message["params"]["taskId"] == "7"
            exchange.text("researched")
        case "tasks/cancel":
            exchange.result({**task, "status": "cancelled"})
        case _:
            return False
    return True


def test_a_tool_that_is_a_task_only_is_called_as_one(tmp_path: Path) -> None:
    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        assert await call(connection) == "researched"

    use(tmp_path, tasks, work)


def test_a_task_that_nobody_waits_for_any_more_is_cancelled(tmp_path: Path) -> None:
    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        with pytest.raises(CallTimeout):
            await call(connection)
        assert server.seen.count("tasks/cancel") == 1

    use(tmp_path, tasks, work, session="slow", call_timeout=0.5)
