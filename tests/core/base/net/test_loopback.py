from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest
from tests.core.models.wire import Peer, Step, Wire, drop, hang, open_stream, serve, status, stream
from tests.kit.waiting import PATIENCE

from cru.core.base.net import (
    BadUrl,
    ConnectFailed,
    ConnectionLost,
    TimedOut,
    TimeLimits,
    TooManyRedirects,
    WholeResponse,
)
from cru.core.base.net.loopback import _Connection
from cru.core.base.net.transport import Transport


async def post(transport: Transport, url: str, body: bytes = b"{}") -> tuple[int, bytes]:
    response = await transport.post_stream(url, {"x": "y"}, (body,))
    try:
        return response.status, await response.read(1 << 20)
    finally:
        await response.close()


def test_a_connection_is_used_again_only_after_a_whole_answer() -> None:
    async def main() -> None:
        transport = Transport()
        async with serve(status(200, "a"), stream(b"b", b"c"), stream(b"d", b"e", pause=0.1), status(200, "f")) as wire:
            assert await post(transport, wire.url) == (200, b"a")
            assert await post(transport, wire.url) == (200, b"bc")
            assert wire.connections == 1
            half_read = await transport.post_stream(wire.url, {}, (b"",))
            assert (await half_read.read(1)) == b"d"
            await half_read.close()
            assert await post(transport, wire.url) == (200, b"f")
            assert wire.connections == 2
            assert wire.requests[0].headers["x"] == "y"
            await transport.close()

    asyncio.run(main())


def test_a_kept_connection_that_the_server_closed_is_replaced_without_a_word() -> None:
    async def main() -> None:
        transport = Transport()
        async with serve(status(200, "a"), drop, status(200, "b")) as wire:
            assert await post(transport, wire.url) == (200, b"a")
            assert await post(transport, wire.url) == (200, b"b")
            assert wire.connections == 2
            await transport.close()

    asyncio.run(main())


def test_a_fresh_connection_that_breaks_before_the_answer_is_an_error() -> None:
    async def main() -> None:
        async with serve(drop) as wire:
            with pytest.raises(ConnectionLost):
                await post(Transport(), wire.url)

    asyncio.run(main())


@pytest.mark.parametrize("answered", [False, True])
def test_cancelling_closes_the_connection(answered: bool) -> None:
    async def main() -> None:
        async with serve(open_stream(b"a") if answered else hang) as wire:
            task = asyncio.create_task(post(Transport(), wire.url))
            seen = await wire.until(1)
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(PATIENCE):
                await seen.gone.wait()

    asyncio.run(main())


@pytest.mark.parametrize("step", [hang, open_stream(b"a")])
def test_silence_ends_a_request(step: object) -> None:
    async def main() -> None:
        async with serve(hang if step is hang else open_stream(b"a")) as wire:
            with pytest.raises(TimedOut, match=r"nothing for|no answer within"):
                await post(Transport(TimeLimits(first_byte=0.05, idle=0.05)), wire.url)

    asyncio.run(main())


def test_informational_answers_are_passed_over() -> None:
    async def early(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        peer.writer.close()

    async def main() -> None:
        async with serve(early) as wire:
            assert await post(Transport(), wire.url) == (200, b"ok")

    asyncio.run(main())


def test_nobody_listening_is_named() -> None:
    async def main() -> None:
        async with serve() as wire:
            url = wire.url
        with pytest.raises(ConnectFailed, match=r"no connection to 127\.0\.0\.1"):
            await post(Transport(), url)

    asyncio.run(main())


def test_one_transport_serves_one_loop_after_another() -> None:
    transport = Transport()

    async def main() -> None:
        async with serve(status(200, "a")) as wire:
            assert await post(transport, wire.url) == (200, b"a")
            await transport.close()

    asyncio.run(main())
    asyncio.run(main())


def redirect(to: str, code: int = 302) -> object:
    return status(code, headers=f"location: {to}\r\n")


def test_get_follows_redirects_asks_for_leave_each_time_and_limits_the_body() -> None:
    async def main() -> None:
        hops: list[str] = []
        async with serve(status(302, headers="location: /two\r\n"), status(200, "0123456789")) as wire:
            transport = Transport()
            page = await transport.get(wire.url, limit_bytes=4, allow=hops.append)
            assert (page.status, page.body, page.truncated) == (200, b"0123", True)
            assert page.url.endswith("/two")
            assert hops == [wire.url, page.url]
            await transport.close()

    asyncio.run(main())


def test_get_refuses_too_many_redirects_and_what_leave_is_not_given_for() -> None:
    def refuse(url: str) -> None:
        raise BadUrl(f"not {url}")

    async def main() -> None:
        away = status(302, headers="location: /again\r\n")
        async with serve(away, away, away) as wire:
            transport = Transport()
            with pytest.raises(TooManyRedirects):
                await transport.get(wire.url, max_redirects=1)
            with pytest.raises(BadUrl):
                await transport.get(wire.url, allow=refuse)
            assert len(wire.requests) == 2
            await transport.close()

    asyncio.run(main())


def test_get_has_a_limit_on_time() -> None:
    async def main() -> None:
        async with serve(hang) as wire:
            with pytest.raises(TimedOut, match="no whole answer from"):
                await Transport().get(wire.url, timeout=0.05)

    asyncio.run(main())


def test_headers_are_not_sent_on_to_another_host() -> None:
    async def main() -> None:
        async with serve(status(200, "x")) as other:
            async with serve(status(302, headers=f"location: {other.url}\r\n")) as wire:
                transport = Transport()
                await transport.get(wire.url, {"authorization": "secret"})
                assert wire.requests[0].headers["authorization"] == "secret"
                assert "authorization" not in other.requests[0].headers
                await transport.close()

    asyncio.run(main())


async def whole(step: Step, method: str, body: bytes = b"", *following: Step) -> tuple[WholeResponse, Wire]:
    transport = Transport()
    async with serve(step, *following) as wire:
        try:
            return await transport.request(method, wire.url, {"content-type": "text/plain", "a": "b"}, body), wire
        finally:
            await transport.close()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_any_request_is_sent_whole_and_its_answer_read_whole(method: str) -> None:
    fetched, wire = asyncio.run(whole(status(404, "no"), method, b"body"))
    assert (fetched.status, fetched.body) == (404, b"no")
    assert wire.requests[0].line == f"{method} /v1 HTTP/1.1"
    assert wire.requests[0].body == b"body"


def test_the_answer_to_head_has_no_body_whatever_length_it_names() -> None:
    async def step(peer: Peer) -> None:
        await peer.head(200, "content-length: 99\r\n")

    fetched, _ = asyncio.run(whole(step, "HEAD"))
    assert (fetched.status, fetched.body, fetched.headers["content-length"]) == (200, b"", "99")


@pytest.mark.parametrize(
    ("code", "method", "follows"),
    [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"), (302, "PUT", "PUT"),
        (307, "POST", "POST"), (308, "POST", "POST"),
    ],
)  # fmt: skip
def test_a_redirect_is_followed_as_browsers_do(code: int, method: str, follows: str) -> None:
    there = status(200) if method == "HEAD" else status(200, "there")
    fetched, wire = asyncio.run(whole(status(code, "", "location: /b\r\n"), method, b"body", there))
    assert fetched.url.endswith("/b")
    second = wire.requests[1]
    assert second.line == f"{follows} /b HTTP/1.1"
    kept = follows == method != "HEAD"
    assert second.body == (b"body" if kept else b"")
    assert ("content-type" in second.headers) is kept
    assert second.headers["a"] == "b"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_an_empty_body_is_named_as_empty(method: str) -> None:
    _, wire = asyncio.run(whole(status(200), method))
    assert wire.requests[0].headers["content-length"] == "0"


LARGE = (b"{", b"a" * 3_000_000, b",", b"b" * 70_000, b"", bytes(range(256)) * 4000, b"}")


def test_a_large_body_arrives_whole() -> None:
    async def main() -> Wire:
        transport = Transport()
        async with serve(status(200, "a"), status(200, "b")) as wire:
            assert await post(transport, wire.url) == (200, b"a")
            response = await transport.post_stream(wire.url, {}, LARGE)
            assert await response.read(9) == b"b"
            await response.close()
            assert wire.connections == 1
            await transport.close()
            return wire

    wire = asyncio.run(main())
    assert wire.requests[1].body == b"".join(LARGE)
    assert wire.requests[1].headers["content-length"] == str(len(b"".join(LARGE)))


def test_a_large_body_is_sent_in_pieces_that_are_no_copies() -> None:
    class Socket(socket.socket):
        """Takes little at once, and remembers of what."""

        parts: list[object] = []

        def send(self, data: Any, flags: int = 0) -> int:
            self.parts.append(data.obj)
            return super().send(data[:100_000])

        def sendmsg(self, buffers: Any, *more: Any) -> int:
            self.parts += [buffer.obj for buffer in buffers]
            return super().send(buffers[0][:100_000])

    async def main() -> bytes:
        near, far = socket.socketpair()
        near.setblocking(False)
        connected = Socket(near.family, near.type, near.proto, near.detach())
        connection = _Connection(connected)
        reader, writer = await asyncio.open_connection(sock=far)
        sending = connection.start_sending(LARGE)
        assert sending is not None
        received = await reader.readexactly(len(b"".join(LARGE)))
        await sending
        connection.close()
        writer.close()
        await writer.wait_closed()
        return received

    assert asyncio.run(main()) == b"".join(LARGE)
    assert {id(part) for part in Socket.parts} == {id(part) for part in LARGE if part}


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_localhost_is_this_machine_and_no_name_server_is_asked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if address == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, address, 0)
        with monkeypatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", None)
            transport = Transport()
            assert await post(transport, f"http://localhost:{server.sockets[0].getsockname()[1]}/") == (200, b"hi")
            await transport.close()
        server.close()
        await server.wait_closed()

    asyncio.run(main())


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("body", [(b"x" * 30_000_000,), (b"{}",)])
def test_an_answer_that_comes_before_the_body_was_read_counts(body: tuple[bytes, ...]) -> None:
    """A server that refuses a request by its head does not read the rest; that connection is not used again."""
    closed = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
        await writer.drain()
        with contextlib.suppress(ConnectionError):
            while await reader.read(1 << 16):
                await asyncio.sleep(0.001)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        closed.set()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        transport = Transport()
        response = await transport.post_stream(url, {}, body)
        assert (response.status, await response.read(9)) == (413, b"big")
        await response.close()
        if len(body[0]) > 1000:
            await asyncio.wait_for(closed.wait(), PATIENCE)
        await transport.close()
        await asyncio.wait_for(closed.wait(), PATIENCE)
        server.close()
        await server.wait_closed()

    asyncio.run(main())


def test_who_is_cancelled_when_the_answer_comes_is_cancelled_and_nothing_is_reported() -> None:
    async def main() -> list[object]:
        loop, problems = asyncio.get_running_loop(), list[object]()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            reading = asyncio.create_task(_Connection(ours).read())
            await asyncio.sleep(0)
            theirs.send(b"x")
            loop.call_soon(reading.cancel)
            await asyncio.wait([reading])
            assert reading.cancelled()
        return problems

    assert asyncio.run(main()) == []


def test_waiting_asks_the_system_for_nothing_but_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that is given a socket writes it out in words each time, which takes two system calls."""
    described: list[int] = []

    def describe(self: socket.socket) -> str:
        described.append(self.fileno())
        return "a socket"

    monkeypatch.setattr(socket.socket, "__repr__", describe)

    async def main() -> None:
        transport = Transport()
        async with serve(stream(b"a", b"b", pause=0.01), status(200, "c")) as wire:
            described.clear()
            assert await post(transport, wire.url) == (200, b"ab")
            assert await post(transport, wire.url, b"x" * 3_000_000) == (200, b"c")
            await transport.close()
            assert described == []

    asyncio.run(main())
