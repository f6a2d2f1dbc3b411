"""The scripted server does to a client what real servers do."""

from __future__ import annotations

import gc
import http.client
import json
import socket
import sys
import time
from contextlib import closing
from typing import Any

import msgspec
import pytest
from tests.kit import Call, Drop, Hang, Raw, Received, Reply, Server, Status, Step, server
from tests.kit.server import text as always

OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"
ASK = {"model": "mock", "stream": True, "messages": []}


def post(model: Server, path: str = OPENAI, ask: dict[str, Any] = ASK) -> tuple[int, dict[str, str], bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", model.port, timeout=30)) as connection:
        connection.request("POST", path, json.dumps(ask), {"X-Test": "yes"})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()


def events(body: bytes) -> list[dict[str, Any]]:
    lines = (line[6:] for line in body.decode().splitlines() if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def streamed(step: Step, path: str = OPENAI) -> list[dict[str, Any]]:
    with server([step]) as model:
        return events(post(model, path)[2])


def half_open(model: Server) -> socket.socket:
    """A client that has sent its request and reads nothing yet."""
    client = socket.create_connection(("127.0.0.1", model.port), 5)
    body = json.dumps(ASK).encode()
    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    return client


def test_openai_text_comes_in_deltas_and_ends_with_usage() -> None:
    found = streamed(Reply("Grüße", pieces=2))
    assert [e["choices"][0]["delta"].get("content") for e in found[1:4]] == ["Gr", "üß", "e"]
    assert found[-2]["choices"][0]["finish_reason"] == "stop"
    assert found[-1]["usage"]["prompt_tokens"] == 100


def test_openai_calls_come_in_fragments_with_one_id_each() -> None:
    found = streamed(Reply(calls=[Call("bash", {"command": "true"}), Call("ls", "{broken")], pieces=5))
    parts = [c for e in found if e["choices"] for c in e["choices"][0]["delta"].get("tool_calls", ())]
    text = {i: "".join(p["function"]["arguments"] for p in parts if p["index"] == i) for i in (0, 1)}
    assert text == {0: '{"command":"true"}', 1: "{broken"}
    assert [p["id"] for p in parts if "id" in p] == ["call_0_0", "call_0_1"]


def test_anthropic_blocks_open_and_close_in_order() -> None:
    found = streamed(Reply("hi", think="hm", calls=[Call("ls")]), ANTHROPIC)
    starts = [e["content_block"]["type"] for e in found if e["type"] == "content_block_start"]
    assert starts == ["thinking", "text", "tool_use"]
    assert [e["index"] for e in found if e["type"] == "content_block_stop"] == [0, 1, 2]
    assert found[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
def test_without_stream_the_answer_is_one_document(path: str) -> None:
    with server([Reply("hi", calls=[Call("ls")]), Reply("hi", json=True)]) as model:
        plain = post(model, path, {"model": "mock"})
        forced = post(model, path)
    assert plain[1]["content-type"] == forced[1]["content-type"] == "application/json"
    assert "hi" in plain[2].decode() and json.loads(forced[2])


def test_a_message_reply_has_no_deltas() -> None:
    found = streamed(Reply("hi", message=True))
    assert len(found) == 1 and found[0]["choices"][0]["message"]["content"] == "hi"


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
def test_an_error_in_the_stream_ends_it(path: str) -> None:
    found = streamed(Reply("hi", error="too busy"), path)
    assert found[-1]["error"]["message"] == "too busy"


def test_split_cuts_inside_characters() -> None:
    with server([Reply("ü", split=1)]) as model, closing(half_open(model)) as client:
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            data += client.recv(4096)
    assert b"1\r\n\xc3\r\n1\r\n\xbc\r\n" in data


def test_a_drop_before_the_answer_closes_the_connection() -> None:
    with server([Drop(before=True)]) as model, pytest.raises(http.client.RemoteDisconnected):
        post(model)


def test_a_drop_in_the_middle_leaves_the_body_incomplete() -> None:
    with server([Drop(after_bytes=7)]) as model, pytest.raises(http.client.IncompleteRead) as lost:
        post(model)
    assert lost.value.partial == b"data: {"


def test_status_carries_headers_and_a_message() -> None:
    with server([Status(429, {"retry-after": "3"}, "slow down")]) as model:
        code, headers, body = post(model)
    assert (code, headers["retry-after"], json.loads(body)["error"]["message"]) == (429, "3", "slow down")


def test_raw_bytes_are_sent_as_they_are() -> None:
    with server([Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", split=3)]) as model:
        assert post(model)[2] == b"hello"


def test_a_client_that_leaves_a_hanging_answer_is_noticed() -> None:
    with server([Hang("so far")]) as model:
        with closing(half_open(model)) as client:
            model.wait(1)
            seen = b""
            while b"so far" not in seen:
                seen += client.recv(4096)
            assert model.closed == []
        assert model.wait_closed() == [0]


def test_leaving_the_block_ends_hanging_answers() -> None:
    with server([Hang()]) as model:
        client = half_open(model)
        model.wait(1)
    with closing(client):
        while client.recv(4096):
            pass
    assert model.closed == []


def test_a_script_that_cannot_be_sent_fails_the_test() -> None:
    with pytest.raises(msgspec.DecodeError), server([Reply(calls=[Call("ls", "{broken")], json=True)]) as model:
        with pytest.raises(http.client.RemoteDisconnected):
            post(model, ANTHROPIC)


def test_a_whole_answer_is_not_a_lost_client() -> None:
    with server([Reply("hi")]) as model:
        post(model)
        time.sleep(0.05)
        assert model.closed == []


def test_one_connection_serves_many_requests() -> None:
    with server([Reply("a"), Reply("b")]) as model:
        with closing(http.client.HTTPConnection("127.0.0.1", model.port, timeout=30)) as connection:
            for text in ("a", "b"):
                connection.request("POST", OPENAI, json.dumps(ASK))
                assert f'"{text}"' in connection.getresponse().read().decode()


def test_requests_are_recorded_with_headers_body_and_times() -> None:
    with server([Reply("hi")]) as model:
        post(model)
        seen = model.wait(1)[0]
    assert (seen.method, seen.path, seen.body, seen.headers["x-test"]) == ("POST", OPENAI, ASK, "yes")
    assert seen.began <= seen.time <= time.monotonic()


def test_the_model_list_takes_no_step() -> None:
    with server() as model, closing(http.client.HTTPConnection("127.0.0.1", model.port, timeout=30)) as connection:
        connection.request("GET", "/v1/models")
        assert json.loads(connection.getresponse().read())["data"][0]["id"] == "mock"
        assert model.requests == []


def test_a_function_sees_the_request_and_chooses_the_step() -> None:
    def echo(request: Received) -> Step:
        return Reply(request.body["model"])

    with server([echo]) as model:
        assert "mock" in post(model)[2].decode()


def test_a_function_that_fails_fails_the_test() -> None:
    def wrong(request: Received) -> Step:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"), server(wrong) as model:
        assert post(model)[0] == 500


def test_one_function_answers_for_ever() -> None:
    with server(always("hi")) as model:
        assert [post(model)[0] for _ in range(3)] == [200, 200, 200]


def test_a_script_that_has_run_out_says_so() -> None:
    with server([Reply("hi")]) as model:
        post(model)
        code, _, body = post(model)
    assert code == 500 and "has 1 steps, this is request 2" in json.loads(body)["error"]["message"]


def test_waiting_for_too_much_says_what_came() -> None:
    with server() as model, pytest.raises(TimeoutError, match="2 requests, saw 0"):
        model.wait(2, timeout=0.05)


def test_a_client_that_comes_as_it_ends_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: left.append(str(unraisable.exc_value)))
    for _ in range(10):
        with server([Hang("so far")]) as model:
            client = socket.create_connection(("127.0.0.1", model.port))
        client.close()
    gc.collect()
    assert left == []
