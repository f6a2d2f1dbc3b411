"""The real command against servers that are silent, endless, or say something else than a reply."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.core.models.wire import (
    Peer,
    Step,
    Wire,
    delta,
    finish,
    hang,
    hello,
    open_stream,
    serve,
    sse,
    status,
    stream,
    whole,
)
from tests.kit.home import HomeDir, home
from tests.kit.run import Done, cru

HALF = sse(delta(content="half"), done=False)
PLAIN = '{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}'


def ask(
    tmp_path: Path, *steps: Step, config: str = "", env: Mapping[str, str] | None = None, argv: tuple[str, ...] = ()
) -> tuple[Done, Wire, HomeDir]:
    async def main() -> tuple[Done, Wire, HomeDir]:
        async with serve(*steps) as wire:
            here = home(tmp_path, config=config, url=wire.url)
            return await asyncio.to_thread(cru, *argv, "hi", home=here, env=env), wire, here

    return asyncio.run(main())


def failed(
    tmp_path: Path, *steps: Step, config: str = "", env: Mapping[str, str] | None = None, requests: int = 1
) -> tuple[str, list[str]]:
    """What standard error says of a run that fails, and what was logged after the prompt. The log has the leg's end."""
    done, wire, here = ask(tmp_path, *steps, hello(), config=config, env=env)
    assert done.code == 1, done
    assert "Traceback" not in done.err and "trying again" not in done.err
    assert len(wire.requests) == requests
    *entries, end = here.log()
    assert end["entry_type"] == "leg_ended" and end["metadata"]["cause"] == "error"
    return done.err, [entry["content"] for entry in entries if entry.get("role") == "agent"]


def endless(piece: bytes, first: bytes = b"", pause: float = 0.02) -> Step:
    """A stream that goes on until the client leaves."""

    async def step(peer: Peer) -> None:
        await peer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        if first:
            await peer.chunk(first)
        while True:
            await peer.chunk(piece)
            await asyncio.sleep(pause)

    return step


def test_a_server_that_never_answers_costs_one_wait(tmp_path: Path) -> None:
    error, _ = failed(tmp_path, hang, config="first_byte_timeout = 0.2")
    assert "no answer within 0.2 s" in error and "`first_byte_timeout`" in error


def test_a_server_that_falls_silent_ends_the_reply_and_what_came_is_kept(tmp_path: Path) -> None:
    error, said = failed(tmp_path, open_stream(HALF), config="idle_timeout = 0.2")
    assert "sent nothing for 0.2 s" in error and "`idle_timeout`" in error
    assert said == ["half"]


@pytest.mark.parametrize(
    "piece", [b": keep-alive\n\n", b"\n", sse({"type": "ping"}, done=False), sse(delta(content=""), done=False)]
)
@pytest.mark.parametrize("first", [b"", HALF])
def test_keep_alives_without_end_have_one(tmp_path: Path, piece: bytes, first: bytes) -> None:
    error, said = failed(tmp_path, endless(piece, first), config="stall_timeout = 0.2")
    assert "nothing but keep-alives for 0.2 s" in error and "`stall_timeout`" in error
    assert said == (["half"] if first else [])


def test_a_reply_that_goes_on_and_on_has_an_end(tmp_path: Path) -> None:
    error, said = failed(tmp_path, endless(sse(delta(content="x"), done=False)), config="reply_timeout = 0.3")
    assert "not whole after 0.3 s" in error and "`reply_timeout`" in error
    assert set(said[0]) == {"x"}


@pytest.mark.parametrize("field", ["content", "reasoning"])
def test_a_reply_has_a_largest_size(tmp_path: Path, field: str) -> None:
    piece = sse(delta(**{field: "x" * 10_000}), done=False)
    error, said = failed(tmp_path, endless(piece, pause=0), config="reply_size_limit = 95_000")
    assert "more than 95,000 characters" in error and "`reply_size_limit`" in error
    assert all(len(text) <= 95_000 for text in said)


def test_the_arguments_of_calls_count_too(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "write", "arguments": "x" * 10_000}}
    error, _ = failed(
        tmp_path, endless(sse(delta(tool_calls=[call]), done=False), pause=0), config="reply_size_limit = 95_000"
    )
    assert "more than 95,000 characters" in error


def test_a_whole_reply_that_drips_has_an_end(tmp_path: Path) -> None:
    error, _ = failed(tmp_path, endless(b" ", b'{"choices":'), config="reply_timeout = 0.3")
    assert "not whole after 0.3 s" in error


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("stall_timeout = 0.2", "nothing but keep-alives for 0.2 s"),
        ("reply_timeout = 0.2", "not whole after 0.2 s"),
        ("stall_timeout = 30\nidle_timeout = 0.1", "sent nothing for 0.1 s"),
    ],
)
@pytest.mark.parametrize("begun", [HALF, b": ping\n\n", b'{"choices":'])
def test_limits_hold_when_nothing_comes_any_more(tmp_path: Path, config: str, error: str, begun: bytes) -> None:
    message, _ = failed(tmp_path, open_stream(begun), config=config)
    assert error in message


def test_a_chunk_size_that_drips_has_an_end(tmp_path: Path) -> None:
    async def step(peer: Peer) -> None:
        await peer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        while True:
            await peer.send(b"0")
            await asyncio.sleep(0.02)

    error, _ = failed(tmp_path, step, config="stall_timeout = 0.2")
    assert "nothing but keep-alives" in error


def test_the_result_of_a_run_for_programs_says_it_too(tmp_path: Path) -> None:
    done, _, _ = ask(tmp_path, hang, config="first_byte_timeout = 0.2", argv=("--json",))
    last = json.loads(done.out.splitlines()[-1])
    assert (last["type"], last["code"], done.code) == ("result", 1, 1)


# ---- something else than a reply ----


def packed(kind: str, body: bytes) -> Step:
    async def step(peer: Peer) -> None:
        await peer.head(
            200, f"content-type: text/event-stream\r\ncontent-encoding: {kind}\r\ncontent-length: {len(body)}\r\n"
        )
        await peer.send(body[:20])
        await asyncio.sleep(0.01)
        await peer.send(body[20:])

    return step


def test_a_reply_that_is_compressed_unasked_is_read(tmp_path: Path) -> None:
    reply = sse(delta(content="hello " * 5000), finish())
    done, wire, _ = ask(tmp_path, packed("gzip", gzip.compress(reply)))
    assert (done.code, done.out.strip()) == (0, ("hello " * 5000).strip())
    assert len(wire.requests) == 1


def test_a_reply_compressed_in_another_way_is_named(tmp_path: Path) -> None:
    error, _ = failed(tmp_path, packed("br", b"xxxx" * 10))
    assert "compressed its answer with 'br'" in error


def test_a_damaged_compressed_reply_is_no_traceback(tmp_path: Path) -> None:
    done, _, _ = ask(tmp_path, *[packed("gzip", b"no gzip at all" * 3)] * 2, config="request_tries = 2")
    assert done.code == 1 and "Traceback" not in done.err
    assert "the compressed answer is damaged" in done.err


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_names_its_target_which_never_sees_the_key(tmp_path: Path, code: int) -> None:
    async def main() -> tuple[Done, int, int, str]:
        async with serve(hello()) as there:
            target = there.url + "/chat/completions"
            async with serve(status(code, "moved", f"location: {target}?key=x\r\n"), hello()) as wire:
                here = home(tmp_path, url=wire.url)
                done = await asyncio.to_thread(cru, "hi", home=here)
                return done, len(wire.requests), there.connections, there.url

    done, requests, connections, url = asyncio.run(main())
    assert (done.code, requests, connections) == (1, 1, 0)
    assert f"answered {code}" in done.err and f'base_url = "{url}"' in done.err
    assert "key=x" not in done.err and "kit-key" not in done.err


@pytest.mark.parametrize(
    "usage",
    ["many", [], 7, {"prompt_tokens": "a lot"}, {"prompt_tokens": 1.5}, {"prompt_tokens": {}}, {"prompt_tokens_details": 3}],
)  # fmt: skip
def test_a_reply_counts_whatever_its_usage_says(tmp_path: Path, usage: object) -> None:
    done, _, _ = ask(tmp_path, stream(sse(delta(content="hello"), finish(usage=usage))))
    assert (done.code, done.out.strip()) == (0, "hello")


DEEP = b"[" * 200_000


@pytest.mark.parametrize(
    "step",
    [
        stream(b"data: " + DEEP + b"\n\n"),
        stream(b'data: {"choices":[{"delta":{"reasoning_details":' + DEEP + b"\n\n"),
        whole('{"choices":' + DEEP.decode()),
        status(400, '{"detail":' + DEEP.decode()),
    ],
)
def test_brackets_without_end_are_no_traceback(tmp_path: Path, step: Step) -> None:
    error, _ = failed(tmp_path, step)
    assert "cannot understand the reply" in error or "answered 400" in error


def test_arguments_of_brackets_without_end_do_not_spoil_the_context(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "ls", "arguments": "[" * 200_000}}
    done, wire, _ = ask(tmp_path, stream(sse(delta(tool_calls=[call]), finish("tool_calls"))), hello())
    assert (done.code, done.out.strip()) == (0, "hello"), done
    assert len(wire.requests) == 2


# ---- no way to the server ----


def test_no_certificates_are_named_with_the_next_step(tmp_path: Path) -> None:
    error, _ = failed(
        tmp_path, config='base_url = "https://models.invalid/v1"', env={"SSL_CERT_FILE": "/nonexistent.pem"}, requests=0
    )
    assert "SSL_CERT_FILE=/nonexistent.pem" in error


def test_a_dead_proxy_is_named(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{closed.getsockname()[1]}"
        done, _, _ = ask(
            tmp_path,
            config='base_url = "https://models.invalid/v1"\nrequest_tries = 1',
            env={"HTTPS_PROXY": f"http://user:word@{proxy}"},
        )
    assert done.code == 1
    assert f"through the proxy {proxy} (HTTPS_PROXY)" in done.err and "NO_PROXY=models.invalid" in done.err
    assert "word@" not in done.err
