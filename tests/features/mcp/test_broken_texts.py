"""Messages of servers that are no Unicode, or no messages: they are read with replacements, or fail the request that they answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse
from tests.features.mcp.scripted_http import Exchange, ScriptedServer, call
from tests.features.mcp.test_http import use as use_http
from tests.features.mcp.test_stdio import use as use_program

from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.mend import read_unreadable

BROKEN_TEXTS = {
    "a byte": (b"a \xff b", "a � b"),
    "a cut character": (b"\xe2\x82", "�"),
    "a surrogate in UTF-8": (b"\xed\xa0\x80", "���"),
    "a high surrogate": (rb"a \ud800 b", "a � b"),
    "a low surrogate": (rb"\uDC00", "�"),
    "two high ones": (rb"\ud83d\ud83d\ude00", "�😀"),
    "a pair": (rb"\ud83d\ude00", "😀"),
    "a backslash": (rb"\\ud800 \ud800", r"\ud800 �"),
}
"""The inside of a JSON text as a server writes it, and as it is read. Only whole pairs are Unicode."""


@pytest.mark.parametrize("name", BROKEN_TEXTS)
def test_a_text_that_is_no_unicode_is_read_with_replacements(name: str) -> None:
    raw, text = BROKEN_TEXTS[name]
    message = read_unreadable(b'{"jsonrpc":"2.0","id":7,"result":{"text":"' + raw + b'"}}')
    assert isinstance(message, JSONRPCResponse) and message.id == 7 and message.result == {"text": text}
    heard = read_unreadable(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + raw + b'"}}')
    assert isinstance(heard, JSONRPCNotification) and heard.params == {"data": text}


@pytest.mark.parametrize(
    ("data", "identity"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":7}', 7),
        (b'{"jsonrpc": "2.0", "id": "seven", "result": {"a', "seven"),
        (b'{"result": {"id": 3, "a": }, "id": 7, "jsonrpc": "2.0"}', 7),
        (b"[" * 100_000, None),
        (b'{"result": {"id": 3, "a": ', None),  # the id of something in the result
        (b'{"jsonrpc":"2.0","id":7,"method":"ping", "params": [', None),  # a request of the server's
        (b'{"jsonrpc":"2.0","id":null,"result":7}', None),
        (b'{"jsonrpc":"2.0","id":true,"result":7}', None),
        (b"starting \xff", None),
        ({"id": 7, "result": []}, 7),
        (["id", 7], None),
    ],
)
def test_what_cannot_be_read_fails_the_request_that_it_answers(data: object, identity: int | str | None) -> None:
    message = read_unreadable(data)
    assert (message.id if isinstance(message, JSONRPCError) else message) == identity


@pytest.mark.parametrize("raw", [rb"\xff", rb"\\ud800", rb"\x01"])
def test_an_answer_of_a_program_with_a_broken_text_is_the_answer(tmp_path: Path, raw: bytes) -> None:
    line = '{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "all RAW done"}]}}'
    body = f"os.write(1, (b'{line}' % number).replace(b'RAW', b'{raw.decode()}') + bytes([10]))"

    async def work(connection: ServerConnection) -> None:
        assert (await call(connection)).startswith("all ")
        assert await call(connection) == "worked"

    use_program(tmp_path, body, work)


BROKEN = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "all RAW done"}]}}'


@pytest.mark.parametrize("is_event", [False, True])
@pytest.mark.parametrize(
    ("raw", "text"), [(b"\xff", "all \ufffd done"), (rb"\ud800", "all \ufffd done"), (b"", "all  done")]
)
def test_an_answer_over_http_with_a_broken_text_is_the_answer(
    tmp_path: Path, is_event: bool, raw: bytes, text: str
) -> None:
    def rule(exchange: Exchange) -> bool:
        if not exchange.is_call:
            return False
        body = BROKEN.replace(b"RAW", raw) % exchange.message["id"]
        if is_event:
            exchange.stream()
            event = b"event: message\ndata: " + body + b"\n\n"
            for at in range(0, len(event), 7):
                exchange.wfile.write(event[at : at + 7])
                exchange.wfile.flush()
        else:
            exchange.status(200, body, {"content-type": "application/json"})
        return True

    async def work(connection: ServerConnection, server: ScriptedServer) -> None:
        assert await call(connection) == text

    use_http(tmp_path, rule, work)
