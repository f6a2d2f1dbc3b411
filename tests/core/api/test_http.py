"""http: a real server on this machine, and no server at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.core.models.wire import Wire, drop, hang, serve, status

from cru.core.api import http
from cru.core.api.host import BadArgument


def ask(room: Room, function: Callable[..., Any], *steps: Any, **opts: Any) -> tuple[dict[str, Any], Wire]:
    async def main() -> tuple[dict[str, Any], Wire]:
        async with serve(*steps) as wire:
            if function is http.request:
                return await function({"url": wire.url, **opts}), wire
            return await function(wire.url, opts), wire

    found: tuple[dict[str, Any], Wire] = room(main)
    return found


METHODS: list[tuple[Callable[..., Any], str]] = [
    (http.get, "GET"), (http.post, "POST"), (http.put, "PUT"), (http.patch, "PATCH"), (http.delete, "DELETE"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "method"), METHODS)
def test_each_method_sends_headers_and_body_as_given(tmp_path: Path, function: Callable[..., Any], method: str) -> None:
    answer, wire = ask(
        Room(tmp_path), function, status(200, "fine", "X-Thing: 1\r\n"), headers={"X-Key": "k", "N": 1}, body='{"a":1}'
    )
    assert answer == {"status": 200, "ok": True, "headers": {"content-length": "4", "x-thing": "1"}, "body": "fine"}
    seen = wire.requests[0]
    assert seen.line == f"{method} /v1 HTTP/1.1"
    assert (seen.headers["x-key"], seen.headers["n"], seen.body) == ("k", "1", b'{"a":1}')


@pytest.mark.parametrize(
    ("code", "ok"), [(199, False), (204, True), (299, True), (304, False), (404, False), (500, False)]
)
def test_ok_means_two_hundred_to_two_hundred_ninety_nine(tmp_path: Path, code: int, ok: bool) -> None:
    if code == 199:
        code = 300
    answer, _ = ask(Room(tmp_path), http.get, status(code))
    assert (answer["status"], answer["ok"], "error" in answer) == (code, ok, False)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "get", "DELETE"])
def test_request_takes_any_method(tmp_path: Path, method: str) -> None:
    async def head(peer: Any) -> None:
        await peer.head(200, "content-length: 999\r\n" if method == "HEAD" else "content-length: 0\r\n")

    answer, wire = ask(Room(tmp_path), http.request, head, method=method)
    assert answer["ok"] is True
    assert answer["body"] == ""
    assert wire.requests[0].line.startswith(method.upper())


def test_redirects_are_followed(tmp_path: Path) -> None:
    steps = [status(302, "", "location: /there\r\n"), status(200, "arrived")]
    answer, wire = ask(Room(tmp_path), http.post, *steps, body="x")
    assert answer["body"] == "arrived"
    assert [r.line.rpartition(" ")[0] for r in wire.requests] == ["POST /v1", "GET /there"]


@pytest.mark.parametrize("step", [drop, hang])
def test_a_failure_of_the_network_is_a_table(tmp_path: Path, step: Any) -> None:
    answer, _ = ask(Room(tmp_path), http.get, step, timeout=0.1)
    assert (answer["ok"], answer["status"], answer["body"], answer["headers"]) == (False, 0, "", {})
    assert answer["error"]


@pytest.mark.parametrize("url", ["not a url", "ftp://x/y", "http://", "http://127.0.0.1:1/", "http://user:pw@h/"])
def test_a_url_that_leads_nowhere_is_a_table_too(tmp_path: Path, url: str) -> None:
    answer = Room(tmp_path)(http.get, url)
    assert (answer["ok"], answer["status"]) == (False, 0)
    assert answer["error"]


def test_a_header_with_a_line_break_is_not_sent(tmp_path: Path) -> None:
    answer, wire = ask(Room(tmp_path), http.get, status(200), headers={"a": "b\r\nc: d"})
    assert answer["ok"] is False
    assert not wire.requests


def test_a_body_that_is_no_text_comes_back_byte_for_byte(tmp_path: Path) -> None:
    async def step(peer: Any) -> None:
        await peer.head(200, "content-length: 2\r\n")
        await peer.send(b"\xff\xfe")

    answer, _ = ask(Room(tmp_path), http.get, step)
    assert answer["body"].encode("utf-8", "surrogateescape") == b"\xff\xfe"


BAD: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (http.get, (None,), "url must be a string"),
    (http.get, ("http://x", "opts"), "options must be a table"),
    (http.get, ("http://x", {"timeout": "1"}), "timeout must be a number"),
    (http.get, ("http://x", {"timeout": -1}), "timeout must be finite"),
    (http.get, ("http://x", {"headers": "a: b"}), "headers must be a table"),
    (http.request, ({"url": "http://x", "method": "FETCH"},), "unknown method `FETCH`"),
    (http.request, ({},), "url must be a string"),
]


@pytest.mark.parametrize(("function", "args", "message"), BAD)
def test_bad_arguments_raise(tmp_path: Path, function: Callable[..., Any], args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        Room(tmp_path)(function, *args)


def test_the_sessions_own_transport_is_used_if_it_is_lent(tmp_path: Path) -> None:
    from cru.core.base.net.transport import Transport

    room, lent = Room(tmp_path), []

    def transport() -> Transport:
        lent.append(Transport())
        return lent[-1]

    async def main() -> dict[str, Any]:
        async with serve(status(200, "x")) as wire:
            found = await http.get(wire.url)
            await lent[0].close()
            return found

    room.parts.models.transport = transport
    assert room(main)["body"] == "x"
    assert len(lent) == 1
    assert "transport" not in room.session.shared
