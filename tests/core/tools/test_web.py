from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.core.tools.box import Box

from cru.core.base.net import WholeResponse
from cru.core.base.net.transport import Transport
from cru.core.base.values.errors import CruError
from cru.core.tools.html import plain_text
from cru.core.tools.protocol import ToolError
from cru.core.tools.web import sensitive_reason


def reply_of(
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    status: int = 200,
    truncated: bool = False,
    url: str = "https://a.test/",
) -> WholeResponse:
    """What the transport gives back."""
    return WholeResponse(status, headers or {}, body, url, truncated)


class Web:
    """Lends `fetch` to a tool and remembers what was asked for."""

    def __init__(self, reply: WholeResponse | Exception) -> None:
        self.reply = reply
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def get(self, url: str, **more: Any) -> WholeResponse:
        self.asked.append((url, more))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def _lend(box: Box, reply: WholeResponse | Exception) -> Web:
    web = Web(reply)
    box.services.fetch = web.get
    return web


def test_text_comes_as_it_is_with_the_limits_given_on(box: Box) -> None:
    web = _lend(box, reply_of(b"hello\n", {"content-type": "text/plain"}))
    assert box.text("fetch", url="https://a.test/") == "hello\n"
    ((url, limits),) = web.asked
    assert (url, limits["limit_bytes"], limits["timeout"]) == ("https://a.test/", 1024 * 1024, 30.0)


def test_json_comes_as_it_is(box: Box) -> None:
    body = json.dumps({"a": [1, 2]}).encode()
    _lend(box, reply_of(body, {"Content-Type": "application/vnd.api+json"}))
    assert box.text("fetch", url="https://a.test/") == body.decode()


def test_html_becomes_text_with_links(box: Box) -> None:
    page = (
        "<html><head><title>A  page</title><style>p {}</style></head><body><script>alert(1)</script><h1>Head</h1>"
        "<p>One <b>bold</b>\n word &amp; <a href='/x'>a link</a>, <a href='#y'>none</a>.<ul><li>first<li>second</ul>"
    )
    _lend(box, reply_of(page.encode(), {"content-type": "text/html; charset=UTF-8"}))
    text = box.text("fetch", url="https://a.test/")
    assert text == "A page\n\nHead\n\nOne bold word & a link (/x), none.\n\n- first\n- second"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        ("no tags", "no tags"),
        ("<head><title>T</title><body>b", "T\n\nb"),
        ("<script>if (a < b) {}</script>x", "x"),
        ("</script>x</div>", "x"),
        ("<p>a<br>b", "a\nb"),
        ("<svg><path/></svg>x<template>y</template>", "x"),
        ("a<!-- no -->b", "ab"),
        ("&lt;tag&gt; &eacute;", "<tag> é"),
        ("<a href>x</a><a href='javascript:y'>z</a>", "xz"),
        ("<", "<"),
    ],
)
def test_broken_html_is_read_as_far_as_it_goes(page: str, text: str) -> None:
    assert plain_text(page) == text


def test_the_charset_is_honoured_and_an_unknown_one_does_not_stop_it(box: Box) -> None:
    _lend(box, reply_of(b"caf\xe9", {"content-type": 'text/plain; charset="latin-1"'}))
    assert box.text("fetch", url="https://a.test/") == "café"
    _lend(box, reply_of(b"caf\xe9", {"content-type": "text/plain; charset=klingon"}))
    assert box.text("fetch", url="https://a.test/") == "caf\ufffd"


def test_another_address_and_a_cut_are_told(box: Box) -> None:
    _lend(box, reply_of(b"x", {"content-type": "text/plain"}, truncated=True, url="https://b.test/"))
    text = box.text("fetch", url="https://a.test/")
    assert text == "x\n[from https://b.test/]\n[only the first 1,048,576 bytes were read]"


def test_an_empty_body_is_said_to_be_empty(box: Box) -> None:
    _lend(box, reply_of(b""))
    assert box.text("fetch", url="https://a.test/") == "(empty)"


def test_a_bad_status_is_an_error_with_the_beginning_of_the_body(box: Box) -> None:
    _lend(box, reply_of(b"no such page" + b"x" * 5000, {"content-type": "text/plain"}, status=404))
    message = box.error("fetch", url="https://a.test/")
    assert message.startswith("https://a.test/ answered with status 404\nno such page")
    assert len(message) < 600


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", ""])
def test_what_is_not_text_is_refused_with_its_type_and_size(box: Box, kind: str) -> None:
    _lend(box, reply_of(b"\x89PNG\0\0", {"content-type": kind}))
    message = box.error("fetch", url="https://a.test/")
    assert f"is not text ({kind or 'unknown type'}, 6 bytes)" in message


@pytest.mark.parametrize("error", [OSError("refused"), CruError("no route", "look at the proxy")])
def test_a_failed_connection_is_an_error(box: Box, error: Exception) -> None:
    _lend(box, error)
    assert box.error("fetch", url="https://a.test/").startswith("cannot get https://a.test/: ")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.test/", "a.test", "http://", "http://[::1", "//a.test"])
def test_only_whole_web_addresses_are_taken(box: Box, url: str) -> None:
    web = _lend(box, reply_of())
    assert box.error("fetch", url=url).startswith("`url`: ")
    assert web.asked == []


def test_a_redirect_may_not_lead_into_a_private_network(box: Box) -> None:
    hops = ["https://a.test/", "https://b.test/", "http://169.254.169.254/keys"]

    async def get(url: str, *, allow: Callable[[str], None], **limits: Any) -> WholeResponse:
        for hop in hops:
            allow(hop)
        return reply_of(b"secret")

    box.services.fetch = get
    message = box.error("fetch", url="https://a.test/")
    assert message.startswith("https://a.test/ leads to http://169.254.169.254/keys, and it is a link-local address")
    hops[:] = ["http://localhost:1/", "http://localhost:1/login"]
    assert box.text("fetch", url="http://localhost:1/").startswith("secret")


def test_the_real_transport_fetches_a_page_and_refuses_such_a_redirect(box: Box) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        if path == b"/page":
            head, body = "200 OK\r\ncontent-type: text/html", "<p>hello"
        else:
            head, body = "302 Found\r\nlocation: http://10.0.0.1/", ""
        writer.write(f"HTTP/1.1 {head}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def main() -> tuple[str, str]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = Transport()
        box.services.fetch = transport.get
        async with server:
            page = (await box.acall("fetch", url=f"{base}/page")).content
            with pytest.raises(ToolError) as caught:
                await box.acall("fetch", url=f"{base}/away")
            await transport.close()
        return page, str(caught.value)

    page, refused = asyncio.run(main())
    assert page == "hello"
    assert "leads to http://10.0.0.1/, and it is an address of a private network" in refused


class Rules:
    """What the rules would say, and what they were asked."""

    def __init__(self) -> None:
        self.judged: list[str] = []

    def why_not(self, url: str) -> str:
        self.judged.append(url)
        return "the rule `fetch:*/c` in [permissions] deny forbids it" if url.endswith("/c") else ""

    def why_not_origin(self, url: str) -> str:
        return "no rule"

    def is_named(self, url: str) -> bool:
        return False


def test_each_redirect_within_an_origin_is_judged_by_the_rules(box: Box) -> None:
    targets = {b"/a": b"/b", b"/b": b"/c"}
    served: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        served.append(path)
        head = b"302 Found\r\nlocation: " + targets[path] if path in targets else b"200 OK\r\ncontent-type: text/plain"
        writer.write(b"HTTP/1.1 " + head + b"\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    rules = Rules()

    async def main() -> tuple[str, str]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = Transport()
        box.services.fetch = transport.get
        async with server:
            free = (await box.acall("fetch", url=f"{base}/a")).content
            box.services.rules.web = lambda: rules
            with pytest.raises(ToolError) as caught:
                await box.acall("fetch", url=f"{base}/a")
            await transport.close()
        return free, str(caught.value)

    free, refused = asyncio.run(main())
    assert free.startswith("ok\n[from ") and "the rule `fetch:*/c` in [permissions] deny forbids it" in refused
    assert [url.rpartition("/")[2] for url in rules.judged] == ["b", "c"]
    assert served == [b"/a", b"/b", b"/c", b"/a", b"/b"]


def test_without_a_transport_it_says_so(box: Box) -> None:
    assert box.error("fetch", url="https://a.test/") == "this tool does not work here\n  nothing provides `fetch`"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://localhost:8080/", "this machine"),
        ("http://LOCALHOST./", "this machine"),
        ("http://x.localhost/", "this machine"),
        ("http://127.0.0.1/", "this machine"),
        ("http://127.1/", "this machine"),
        ("http://2130706433/", "this machine"),
        ("http://0x7f000001/", "this machine"),
        ("http://0177.0.0.1/", "this machine"),
        ("http://0.0.0.0/", "this machine"),
        ("http://[::1]/", "this machine"),
        ("http://[::ffff:127.0.0.1]/", "this machine"),
        ("http://10.1.2.3/", "private"),
        ("http://172.16.0.1/", "private"),
        ("http://192.168.1.1/", "private"),
        ("http://[fd00::1]/", "private"),
        ("http://169.254.169.254/latest", "link-local"),
        ("http://[fe80::1]/", "link-local"),
        ("http://[::1", "cannot be understood"),
        ("nonsense", "cannot be understood"),
        ("https://example.com/", ""),
        ("https://8.8.8.8/", ""),
        ("https://172.32.0.1/", ""),
        ("https://1.2.3.4.5/", "cannot be understood"),
        ("https://0xzz/", ""),
        ("https://example.com%00.evil.net/", "cannot be understood"),
        ("http://[fe80::1%25eth0]/", "cannot be understood"),
        ("http://user@example.com/", "cannot be understood"),
        ("http://%31%32%37.0.0.1/", "this machine"),
        ("http://\uff11\uff12\uff17\u30020\u30020\u30021/", "this machine"),
        ("http://\u24db\u24de\u24d2alhost/", "this machine"),
        ("http:\\\\127.0.0.1\\", "this machine"),
        ("http://0x7f.1/", "this machine"),
        ("http://[64:ff9b::a9fe:a9fe]/", "link-local"),
        ("http://[2002:7f00:1::]/", "this machine"),
        ("http://[::7f00:1]/", "this machine"),
        ("http://100.64.0.1/", "public internet"),
        ("http://224.0.0.1/", "public internet"),
        ("http://" + "a." * 500_000, "cannot be understood"),
        ("http://" + "\u0430" * 15_000, "cannot be understood"),
    ],
)
def test_addresses_of_this_machine_and_private_networks_are_sensitive(url: str, why: str) -> None:
    assert (why in sensitive_reason(url)) if why else not sensitive_reason(url)
