"""Hostile MCP servers at an address, through the real command: the answers to a call are those of streams.py, and what is no message."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.features.mcp.scripted_http import Exchange, scripted
from tests.hostile import checks
from tests.hostile.streams import BIG, HTTP, JSON, SSE
from tests.hostile.test_programs import rule
from tests.kit import HomeDir, cru, server

CONFIG = 'mode = "trust"\n[permissions]\nallow = ["mcp_rude_*"]\n[mcp.servers.rude]\nurl = "{url}"\nstart_timeout = 2\ncall_timeout = 2\n'


def result(value: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode()


def texts(text: str) -> bytes:
    return result({"content": [{"type": "text", "text": text}]})


MESSAGES: dict[str, Callable[[], bytes]] = {
    "no UTF-8": lambda: JSON + b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}',
    "NUL characters": lambda: JSON + bytes(1_000_000),
    "brackets without end": lambda: JSON + b"[" * 200_000,
    "events of brackets": lambda: SSE + b"data: " + b"[" * 200_000 + b"\n\n",
    "a result of 100 MB": lambda: JSON + texts("x" * BIG),
    "a result of another request": lambda: JSON + texts("x").replace(b'"id": 1', b'"id": 99'),
    "a result that is none": lambda: JSON + result([1]),
    "a number without end": lambda: JSON + result(7).replace(b"7", b"9" * 500_000),
    "keys that stand twice": lambda: JSON + b'{"jsonrpc":"2.0","id":1,"id":2,"result":{},"result":7}',
    "an event that is none": lambda: SSE + b"event: message\ndata: no\n\n",
    "100,000 notifications": lambda: (
        SSE + b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n' * 100_000
    ),
    "100,000 requests": lambda: SSE + b'data: {"jsonrpc":"2.0","id":"x","method":"ping"}\n\n' * 100_000,
    "100,000 questions": lambda: (
        SSE
        + b'data: {"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{"message":"x","requestedSchema":{}}}\n\n'
        * 1000
    ),
    "half an event": lambda: SSE + b'data: {"jsonrpc":"2.0","id":1,"res',
}
ROWS = {**HTTP, **MESSAGES}
SHORT = ("no UTF-8", "half an event")


def check(home: HomeDir, name: str) -> None:
    data = ROWS[name]()

    def answer(exchange: Exchange) -> bool:
        if not exchange.is_call:
            return False
        exchange.close_connection = True
        number = json.dumps(exchange.message["id"]).encode()
        exchange.wfile.write(data.replace(b'"id": 1,', b'"id": ' + number + b",", 1))
        return True

    with scripted(answer) as guest, server(rule("mcp_rude_work")) as model:
        home.configure(CONFIG.format(url=guest.url), model.url)
        done = cru("hello", home=home)
        checks.check_messages(done, (0,))
        home.configure('mode = "trust"\n', model.url)
        checks.check_next_run(home)
        assert guest.seen, "the server was asked"
    checks.check_log(home, ["hello", "again"])
    checks.check_files(home)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SHORT)
def test_short(home: HomeDir, name: str) -> None:
    check(home, name)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("name", ROWS)
def test_all(home: HomeDir, name: str) -> None:
    check(home, name)
