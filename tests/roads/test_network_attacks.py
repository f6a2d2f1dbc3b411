"""Addresses that only look public: no spelling, no redirect and no name reaches this machine or a private network without a rule."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kit import Call, Reply, Status, cru, home, server
from tests.kit.growth import assert_linear

from cru.core.base.net import ConnectFailed
from cru.core.base.net.transport import Transport
from cru.core.tools.html import plain_text

HERE = (
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0177.1", "017700000001", "127.0.0.1.",
    "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "１２７.0.0.1", "127。0。0。1", "127．0．0．1", "①27.0.0.1", "0", "0.0.0.0", "0x0",
    "localhost", "LOCALHOST", "localhost.", "ｌocalhost", "%6cocalhost", "loc\u00adalhost",
    "a.localhost", "[::1]", "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]",
    "user@127.0.0.1", "example.com@127.0.0.1",
    "127.0.0.1%00.example.com", "127.0.0.1%0d%0a", "[::1%25lo]", "[fe80::1%25eth0]", "127.0.0.1\t", "\t127.0.0.1", "127.0.\n0.1",
)  # fmt: skip
"""Hosts that lead to this machine in one reading or another."""
PRIVATE = (
    "10.0.0.1", "0xa.1", "172.16.0.1", "192.168.1", "3232235777", "169.254.169.254", "0xa9fea9fe", "[fd00::1]", "[::ffff:a9fe:a9fe]",
    "100.64.0.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255", "[ff02::1]", "[fec0::1]", "[64:ff9b:1::a00:1]",
)  # fmt: skip

INSIDE = '{"error":{"message":"inside","code":200,"type":"scripted"}}'
"""What the server says."""


def results(log: list[dict[str, object]]) -> list[str]:
    return [str(e["content"]) for e in log if e["entry_type"] == "tool_result"]


@pytest.mark.parametrize("rules", ["", '[permissions]\nallow = ["fetch", "fetch:*", "fetch:https://example.com/*"]\n'])
def test_no_spelling_of_this_machine_is_reached_without_a_rule(tmp_path: Path, rules: str) -> None:
    with server([Reply("never")]) as target:
        port = target.port
        urls = [f"http://{host}:{port}/v1/x" for host in HERE] + [f"http://{host}/" for host in PRIVATE]
        urls += [f"http:\\\\127.0.0.1:{port}\\", f"http:127.0.0.1:{port}/", f"http:///127.0.0.1:{port}/"]
        urls += [f"http://127.0.0.1:{port}\\@example.com/", f"HTTP://127.1:{port}/", "http://" + "а" * 20_000]
        with server([Reply(calls=[Call("fetch", {"url": url}) for url in urls]), Reply("done")]) as model:
            here = home(tmp_path, config=rules, url=model.url)
            assert cru("-t", "go", home=here).code == 0
        shown = results(here.log())
        assert target.requests == []
    assert len(shown) == len(urls)
    assert [text for text in shown if "Not allowed" not in text and "`url`" not in text] == []


def test_a_rule_that_names_the_host_opens_it(tmp_path: Path) -> None:
    with server([Status(200, {"content-type": "application/json"}, "inside")]) as target:
        base = f"http://127.0.0.1:{target.port}"
        with server([Reply(calls=[Call("fetch", {"url": f"{base}/x"})]), Reply("done")]) as model:
            here = home(tmp_path, config=f'[permissions]\nallow = ["fetch:{base}/*"]\n', url=model.url)
            assert cru("go", home=here).code == 0
        assert results(here.log()) == [INSIDE]


def test_a_deny_rule_holds_for_every_spelling_of_its_host(tmp_path: Path) -> None:
    urls = ["http://8.8.8.8/", "http://0x8.0x8.2056/", "http://134744072/", "http://[::ffff:8.8.8.8]/", "http://８.8.8.8/",
            "http://ⓔxample.com/", "http://ex%61mple.com/", "http://example.com./", "http:\\\\example.com/",
            "http:example.com"]  # fmt: skip
    rules = '[permissions]\ndeny = ["fetch:http://8.8.8.8", "fetch:http://example.com/*"]\n'
    with server([Reply(calls=[Call("fetch", {"url": url}) for url in urls]), Reply("done")]) as model:
        here = home(tmp_path, config=rules, url=model.url)
        assert cru("-t", "go", home=here).code == 0
    shown = results(here.log())
    assert [text for text in shown if "[permissions] deny" not in text] == []
    assert len(shown) == len(urls)


def test_a_redirect_to_another_origin_needs_its_own_leave(tmp_path: Path) -> None:
    with server([Status(200, {}, "the other one")]) as other:
        with server([Status(302, {"location": f"http://127.0.0.1:{other.port}/"})] * 2) as first:
            base = f"http://127.0.0.1:{first.port}"
            with server([Reply(calls=[Call("fetch", {"url": base + "/"})]), Reply("done")]) as model:
                here = home(tmp_path, config=f'[permissions]\nallow = ["fetch:{base}/*"]\n', url=model.url)
                assert cru("-t", "go", home=here).code == 0
            assert len(first.requests) == 1
        assert other.requests == []
    assert "leads to http://127.0.0.1:" in results(here.log())[0]


def _lookups(monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> list[str]:
    """Names lead to these addresses, one answer for each lookup; the names that were looked up."""
    asked: list[str] = []

    async def look_up(self: object, host: str, port: int, **more: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers[len(asked) - 1]]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", look_up)
    return asked


def test_what_was_judged_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is looked up once; a second answer, which leads elsewhere, is never asked for."""
    asked = _lookups(monkeypatch, [["127.0.0.1"], ["10.0.0.1"]])
    judged: list[tuple[str, str]] = []

    async def main(url: str) -> bytes:
        transport = Transport()
        try:
            return (await transport.get(url, allow_address=lambda u, address: judged.append((u, address)))).body
        finally:
            await transport.close()

    with server([Status(200, {"content-type": "application/json"}, "inside")]) as target:
        url = f"http://rebind.test:{target.port}/x"
        assert asyncio.run(main(url)) == INSIDE.encode()
        [request] = target.requests
    assert request.headers["host"] == f"rebind.test:{target.port}"
    assert (asked, judged) == (["rebind.test"], [(url, "127.0.0.1")])


def test_one_address_that_may_not_be_reached_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.core.tools.box import refuse_private

    _lookups(monkeypatch, [["8.8.8.8", "10.0.0.1"]])

    async def main() -> None:
        transport = Transport()
        try:
            await transport.get("http://two.test/", allow_address=refuse_private)
        finally:
            await transport.close()

    with pytest.raises(PermissionError, match=r"10\.0\.0\.1"):
        asyncio.run(main())


def test_a_name_that_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: object, *args: object, **more: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", fail)
    with pytest.raises(ConnectFailed, match=r"the name nowhere\.test cannot be looked up: Name or service not known"):
        asyncio.run(Transport().get("http://nowhere.test/", allow_address=lambda url, address: None))


MIB = 1 << 20
PIECES = [
    "<a ", "<!", "</", "<![", "<![CDATA[", "<?", "<!--", "<a b='", "<svg>", "<p>", "<a href=x", "&#", "<!doctype [", "<a<", "<script>",
    "<title>", "< ", '="', "<a ='", "<a =", "<script>x<", "<a href='",
]  # fmt: skip
PAGES: dict[str, Callable[[int], str]] = {
    **{piece: lambda size, piece=piece: piece * (size // len(piece)) for piece in PIECES},  # type: ignore[misc]
    "other ends": lambda size: "<svg>" * (size // 10) + "</style>" * (size // 16),
    "own ends": lambda size: "<svg>" * (size // 11) + "</svg>" * (size // 11) + "text",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_no_page_of_a_mebibyte_keeps_its_reader_busy(name: str) -> None:
    def work(size: int) -> Callable[[], object]:
        page = PAGES[name](size)
        return lambda: plain_text(page)

    assert_linear(work, MIB)


def test_tags_that_are_closed_leave_the_text() -> None:
    assert plain_text(PAGES["own ends"](MIB)) == "text"
