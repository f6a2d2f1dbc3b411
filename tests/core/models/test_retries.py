from __future__ import annotations

import asyncio
import re
from itertools import count

import pytest
from tests.core.models.harness import Harness, request_of, text_of
from tests.core.models.wire import (
    Peer,
    Step,
    broken_stream,
    delta,
    drop,
    finish,
    hang,
    hello,
    serve,
    sse,
    status,
    stream,
)

from cru.core.base.net import CertificateUntrusted, NetError, Response, TimedOut, TimeLimits, UnknownEncoding
from cru.core.base.values.interruptions import Delayed
from cru.core.base.values.messages import Delta, Text
from cru.core.models.exchange import ReplyLimits
from cru.core.models.protocol import BrokenReply, ModelRefused, ModelUnavailable

OVERLOADED = sse({"error": {"message": "overloaded", "code": 529}}, done=False)


def run(*steps: Step) -> tuple[list[Delta], Harness, int]:
    async def main() -> tuple[list[Delta], Harness, int]:
        async with serve(*steps) as wire:
            harness = Harness(wire.url)
            return await harness.ask(), harness, len(wire.requests)

    return asyncio.run(main())


@pytest.mark.parametrize(
    "first",
    [
        *(status(code, "try later") for code in (408, 409, 429, 500, 502, 503, 529)),
        drop,
        broken_stream(),
        broken_stream(b": keep-alive\n\n"),
        stream(b""),
        stream(OVERLOADED),
    ],
)
def test_what_may_pass_is_tried_again_and_said(first: Step) -> None:
    deltas, harness, requests = run(first, hello())
    assert text_of(deltas) == "hello"
    assert requests == 2
    assert len(harness.waits) == 1
    assert "trying again in" in harness.said[0]
    assert "(2 of 4)" in harness.said[0]


@pytest.mark.parametrize(
    ("first", "is_rate_limited"),
    [
        (status(429, "slow down"), True),
        (stream(sse({"error": {"message": "slow down", "code": 429}}, done=False)), True),
        (status(503, "down"), False),
        (drop, False),
    ],
)
def test_a_wait_before_the_next_try_is_part_of_the_stream(first: Step, is_rate_limited: bool) -> None:
    deltas, harness, _ = run(first, hello())
    begun, ended = (item for item in deltas if isinstance(item, Delayed))
    assert begun.until > 1_000_000_000 and begun.is_rate_limited is is_rate_limited and ended == Delayed()
    assert deltas[:2] == [begun, ended] and len(harness.waits) == 1


def test_after_four_tries_the_last_reason_is_told() -> None:
    with pytest.raises(ModelUnavailable, match="answered 503: down") as caught:
        run(*[status(503, "down")] * 4, hello())
    assert caught.value.retryable


def test_waits_grow_and_are_capped() -> None:
    _, harness, _ = run(*[status(500)] * 3, hello())
    for wait, longest in zip(harness.waits, (0.5, 1.0, 2.0), strict=True):
        assert longest / 2 <= wait <= longest


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0", 0.0), ("600", 60.0), ("1.5", 1.5)])
def test_retry_after_is_honoured(header: str, seconds: float) -> None:
    _, harness, _ = run(status(429, headers=f"retry-after: {header}\r\n"), hello())
    assert harness.waits == [seconds]


def test_nothing_is_tried_again_after_the_first_delta() -> None:
    async def main() -> None:
        async with serve(broken_stream(sse(delta(content="half"), done=False)), hello()) as wire:
            harness = Harness(wire.url)
            got: list[Delta] = []
            with pytest.raises(BrokenReply):
                async for item in harness.model.stream(harness.model.encode(request_of("hi"))):
                    got.append(item)
            assert got == [Text("half")]
            assert len(wire.requests) == 1
            assert harness.waits == []
            await harness.transport.close()

    asyncio.run(main())


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(code: int) -> None:
    async def main() -> None:
        async with serve(status(code, "no"), hello()) as wire:
            with pytest.raises(Exception, match=f"answered {code}: no"):
                await Harness(wire.url).ask()
            assert len(wire.requests) == 1

    asyncio.run(main())


def test_silence_is_neither_waited_for_for_ever_nor_tried_again() -> None:
    async def main() -> None:
        async with serve(hang, hello()) as wire:
            harness = Harness(wire.url, limits=TimeLimits(first_byte=0.05))
            with pytest.raises(ModelUnavailable, match=r"no answer within 0\.05 s") as caught:
                await harness.ask()
            assert "first_byte_timeout" in caught.value.hint
            await wire.until(1)  # on a busy machine it is read later than the limit
            assert len(wire.requests) == 1 and harness.waits == []

    asyncio.run(main())


def test_how_often_is_tried_is_a_setting() -> None:
    async def main() -> None:
        async with serve(*[status(503, "down")] * 9) as wire:
            harness = Harness(wire.url, reply_limits=ReplyLimits(tries=2))
            with pytest.raises(ModelUnavailable):
                await harness.ask()
            assert len(wire.requests) == 2 and "(2 of 2)" in harness.said[0]

    asyncio.run(main())


def test_a_server_that_is_not_there_is_named_without_the_key() -> None:
    async def main() -> None:
        async with serve() as wire:
            url = wire.url
        with pytest.raises(ModelUnavailable, match=r"no connection to 127\.0\.0\.1") as caught:
            await Harness(url).ask()
        assert "secret" not in str(caught.value)

    asyncio.run(main())


def test_a_stream_whose_reason_is_error_fails() -> None:
    with pytest.raises(BrokenReply):
        run(stream(sse(delta(content="x"), finish("error"))))


def typed(kind: str, body: str) -> Step:
    return status(200, body, f"content-type: {kind}\r\n" if kind else "")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html; charset=utf-8", "<!doctype html><title>Sign in</title>"),
        ("text/html", ""),
        ("TEXT/HTML", "  \n"),
        ("text/plain", "OK"),
        ("application/xml", "<ok/>"),
        ("", "<html>"),
    ],
)
def test_a_page_instead_of_a_reply_is_named_and_not_asked_for_again(kind: str, body: str) -> None:
    async def main() -> None:
        async with serve(typed(kind, body), hello()) as wire:
            harness = Harness(wire.url)
            with pytest.raises(BrokenReply) as caught:
                await harness.ask()
            said = str(caught.value)
            assert f"127.0.0.1:{wire.port} answered" in said and "base_url" in said
            assert (kind.partition(";")[0].lower() or "without a content type") in said
            assert len(wire.requests) == 1 and harness.waits == []

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "", "text/html"])
def test_a_reply_is_read_whatever_type_a_careless_server_gives_it(kind: str) -> None:
    for body in (
        sse(delta(content="hello"), finish()).decode(),
        '{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}',
    ):
        deltas, _, _ = run(typed(kind, body))
        assert text_of(deltas) == "hello"


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_stream_without_a_type_may_begin_with_any_part_of_a_field(cut: int) -> None:
    data = sse(delta(content="hello"), finish())

    async def step(peer: Peer) -> None:
        await peer.head(200, "transfer-encoding: chunked\r\n")
        await peer.chunk(data[:cut])
        await asyncio.sleep(0.01)
        await peer.chunk(data[cut:])
        await peer.send(b"0\r\n\r\n")

    assert text_of(run(step)[0]) == "hello"


def test_what_a_server_says_cannot_steer_the_terminal() -> None:
    evil = '{"error":{"message":"no\\u001b[2Jway\\u202e"}}'
    for step in (status(400, evil), typed("text/\x1b[2Jx", "hello")):
        with pytest.raises((ModelRefused, BrokenReply)) as caught:
            run(step)
        assert str(caught.value).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "error", [TimedOut("silence"), CertificateUntrusted("no such authority"), UnknownEncoding("br")]
)
def test_what_asking_again_cannot_change_is_not_asked_again(error: NetError, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        harness = Harness("https://models.invalid/v1")
        asked: list[str] = []

        async def post(url: str, headers: object, body: object) -> Response:
            asked.append(url)
            raise error

        monkeypatch.setattr(harness.transport, "post_stream", post)
        with pytest.raises(ModelUnavailable, match=error.message) as caught:
            await harness.ask()
        assert not caught.value.retryable
        assert len(asked) == 1 and harness.waits == []

    asyncio.run(main())


def test_the_clock_is_looked_at_with_each_chunk() -> None:
    """What a reply may cost in time, by a clock that goes on a second each time it is read: pings keep a connection alive, not a reply."""
    seconds = count()

    async def ping(peer: Peer) -> None:
        await peer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        while True:
            await peer.chunk(b": ping\n\n")
            await asyncio.sleep(0.001)

    async def main() -> None:
        async with serve(ping) as wire:
            harness = Harness(wire.url, reply_limits=ReplyLimits(stall=20), clock=lambda: float(next(seconds)))
            with pytest.raises(BrokenReply, match="nothing but keep-alives for 20 s") as caught:
                await harness.ask()
            assert not caught.value.retryable
            assert 20 <= next(seconds) <= 30

    asyncio.run(main())


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://b.example/v2/chat/completions?key=x", "https://b.example/v2"),
        ("//user:word@b.example/v1", "https?://b.example/v1"),
        ("/v2/@team/chat/completions", "http://127.0.0.1:PORT/v2/@team"),
        ("", "http://127.0.0.1:PORT/v1"),
        ("http://[", r"http://\["),
        ("https://b.example/\x1b[2J", r"https://b.example/\[2J"),
        (f"https://b.example/{'sk-very-secret-key'}/v1", r"https://b.example/\*\*\*/v1"),
    ],
)
def test_a_redirect_is_told_whatever_it_leads_to(location: str, target: str) -> None:
    async def main() -> None:
        async with serve(status(307, "", f"location: {location}\r\n"), hello()) as wire:
            harness = Harness(wire.url)
            expected = target.replace("PORT", str(wire.port))
            with pytest.raises(ModelRefused, match="answered 307") as caught:
                await harness.ask()
            assert re.fullmatch(f".* the server has moved to {expected}", caught.value.message)
            assert "base_url" in caught.value.hint and "word" not in str(caught.value)
            assert len(wire.requests) == 1

    asyncio.run(main())
