"""The adapters in front of a real LiteLLM proxy, which itself asks the kit's model server. `bench/install_peers.sh litellm` gets it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.core.models.harness import KEY, LS, Harness, calls_of, text_of
from tests.core.models.real_servers import LITELLM, litellm
from tests.core.models.wire import delta, finish, sse
from tests.kit.home import home
from tests.kit.run import cru
from tests.kit.server import Server, server
from tests.kit.steps import Call, Drop, Hang, Raw, Received, Reply, Status, Step
from tests.kit.waiting import wait_until

from cru.core.base.net.transport import Transport
from cru.core.base.values.messages import Delta, End, Image, Message, Request, Text, ToolCall
from cru.core.models.listing import KeyRefused, list_models
from cru.core.models.protocol import ContextTooLong, ModelError, ModelRefused, ModelUnavailable, OutOfCredit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LITELLM.exists(), reason="LiteLLM is not installed: bench/install_peers.sh litellm"),
]
ROUTES = ("openai_compatible:chat", "openai_compatible:messages", "anthropic:messages")
"""The adapter, and the proxy's model by the language in which the proxy asks for it."""
TRIES = 4


class Proxy(Struct):
    """The proxy, and the server behind it, which answers each request with `step`."""

    url: str
    upstream: Server
    steps: list[Step]

    def ask(self, route: str, step: Step, request: Request | None = None, key: str = KEY) -> list[Delta]:
        adapter, _, model = route.partition(":")
        self.steps[:] = [step]
        self.upstream.requests.clear()
        harness = Harness(self.url, adapter, key=key)
        try:
            return asyncio.run(harness.ask(replace(request or prompt("hi"), model=model)))
        finally:  # the proxy may end its connection a moment after the answer, and what is open counts as left behind
            wait_until(lambda: self.upstream.is_idle, what="the proxy has closed its connections")

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Those of the only request that the server behind the proxy has had."""
        (request,) = self.upstream.requests
        messages: list[dict[str, Any]] = request.body["messages"]
        return messages


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    steps: list[Step] = []

    def rule(request: Received) -> Step:
        return steps[0]

    with server(rule) as upstream:
        # connections that the proxy keeps open would count as left behind by a test
        own = {"api_key": "upstream-key", "extra_headers": {"connection": "close"}}
        models = {
            "chat": {"model": "openai/mock", "api_base": upstream.url, **own},
            "messages": {"model": "anthropic/mock", "api_base": upstream.url.removesuffix("/v1"), **own},
        }
        with litellm(models) as url:
            yield Proxy(url, upstream, steps)


def prompt(*texts: str) -> Request:
    return conversation(*(Message("user", text) for text in texts))


def conversation(*messages: Message) -> Request:
    return Request("", messages=messages, tools=(LS,))


A, B = Call("ls", {"path": "a"}), Call("ls", {"path": "b"})
REPLIES: dict[str, tuple[Reply, str, list[str], str]] = {
    "text": (Reply("hello"), "hello", [], "stop"),
    "text in pieces": (Reply("hello world", pieces=3, split=7), "hello world", [], "stop"),
    "thinking": (Reply("hello", think="hm"), "hello", [], "stop"),
    "parallel calls": (Reply("look", calls=[A, B]), "look", ['ls {"path":"a"}', 'ls {"path":"b"}'], "tool_calls"),
    "calls in pieces": (Reply(calls=[A, B], pieces=2), "", ['ls {"path":"a"}', 'ls {"path":"b"}'], "tool_calls"),
    "repeated ids": (
        Reply(calls=[replace(A, id="c"), replace(B, id="c")]),
        "",
        ['ls {"path":"a"}', 'ls {"path":"b"}'],
        "tool_calls",
    ),
    "broken arguments": (Reply(calls=[Call("ls", '{"path": ')]), "", ['ls {"path": '], "tool_calls"),
    "a limit": (Reply("ha", reason="length"), "ha", [], "length"),
    "a filter": (Reply("ha", reason="content_filter"), "ha", [], "content_filter"),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", REPLIES)
def test_a_reply_comes_through_whole(proxy: Proxy, route: str, case: str) -> None:
    reply, text, calls, reason = REPLIES[case]
    deltas = proxy.ask(route, reply)
    found = calls_of(deltas)
    assert (text_of(deltas), [f"{call.name} {call.arguments}" for call in found]) == (text, calls)
    assert len({call.id for call in found}) == len(calls) and all(call.id for call in found)
    last = deltas[-1]
    assert isinstance(last, End)
    assert (last.reason, last.usage.input, last.usage.output) == (reason, 100, 10)


ENDS = {
    "no end mark": sse(delta(content="a"), finish(), done=False),
    "no reason": sse(delta(content="a")),
    "nothing after the text": sse(delta(content="a"), done=False),
}


@pytest.mark.parametrize("case", ENDS)
def test_the_proxy_ends_a_stream_for_a_server_that_does_not(proxy: Proxy, case: str) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    deltas = proxy.ask(ROUTES[0], Raw(head + ENDS[case]))
    assert (text_of(deltas), type(deltas[-1])) == ("a", End)


TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. "
    "Please reduce the length of the messages."
)
ERRORS: dict[str, tuple[Step, type[ModelError], str, int]] = {
    "bad request": (Status(400, body="bad thing"), ModelRefused, "answered 400.*bad thing", 1),
    "the proxy's own key": (Status(401, body="Incorrect API key"), ModelRefused, "answered 401.*Incorrect API key", 1),
    "credit": (Status(402, body="insufficient credits"), OutOfCredit, "insufficient credits", 1),
    "unknown model": (Status(404, body="no such model"), ModelRefused, "answered 404.*no such model", 1),
    "too many requests": (Status(429, body="slow down"), ModelUnavailable, "answered 429.*slow down", TRIES),
    "failure": (Status(500, body="boom"), ModelUnavailable, "answered 500.*boom", TRIES),
    "overload": (Status(503, body="busy"), ModelUnavailable, "answered 503.*busy", TRIES),
    "too long": (Status(400, body=TOO_LONG), ContextTooLong, "maximum context length is 8192", 1),
    "an error after text": (Reply("half", error="it broke"), ModelUnavailable, "answered 5[02][09].*it broke", 1),
    "an error before text": (Reply(error="it broke"), ModelUnavailable, "answered 5[02][09].*it broke", TRIES),
    "a lost connection": (Drop(before=True), ModelUnavailable, "answered 500", TRIES),
    "a lost stream": (Drop(after_bytes=200), ModelUnavailable, "answered 500", TRIES),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_known_behind_the_proxy(proxy: Proxy, route: str, case: str) -> None:
    step, kind, says, requests = ERRORS[case]
    with pytest.raises(ModelError, match=says) as caught:
        proxy.ask(route, step)
    assert type(caught.value) is kind
    assert len(proxy.upstream.requests) == requests


def turn(*calls: ToolCall, results: tuple[str, ...]) -> list[Message]:
    replies = [Message("tool", "found", call_id=identity) for identity in results]
    return [Message("user", "go"), Message("assistant", "", calls), *replies]


HISTORIES: dict[str, tuple[list[Message], list[str]]] = {
    "broken arguments": (
        turn(ToolCall("c1", "ls", '{"path": '), ToolCall("c2", "ls", "[1]"), ToolCall("c3", "ls", ""), results=("c1", "c2", "c3")),
        ['c1 ls {"_raw":"{\\"path\\": "}', 'c2 ls {"_raw":"[1]"}', "c3 ls {}"],
    ),
    "bad names and ids": (
        turn(ToolCall("c 1|x", "l s!", "{}"), ToolCall("", "", "{}"), results=("c 1|x", "")),
        ["c_1_x_407f15ed l_s_ {}", "call_00000000 unknown_tool {}"],
    ),
    "repeated ids": (
        [*turn(ToolCall("c", "ls", "{}"), results=("c",)), *turn(ToolCall("c", "ls", "{}"), results=("c",))],
        ["c ls {}", "c_2 ls {}"],
    ),
    "a call without a result": ([*turn(ToolCall("c1", "ls", "{}"), results=()), Message("user", "well?")], ["c1 ls {}"]),
    "a result without a call": ([Message("user", "go"), Message("tool", "found", call_id="c9")], []),
    "two prompts": ([Message("user", "go"), Message("user", "well?")], []),
    "an empty reply": ([Message("user", "go"), Message("assistant", ""), Message("user", "well?")], []),
}  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", HISTORIES)
def test_a_conversation_arrives_behind_the_proxy_as_strict_servers_take_it(proxy: Proxy, route: str, case: str) -> None:
    messages, calls = HISTORIES[case]
    assert text_of(proxy.ask(route, Reply("ok"), conversation(*messages))) == "ok"
    sent, results = read_calls(proxy.messages)
    assert sent == calls
    assert results == [call.partition(" ")[0] for call in calls]
    roles = [message["role"] for message in proxy.messages if message["role"] != "tool"]
    assert all(roles[at] != roles[at + 1] or calls for at in range(len(roles) - 1))


def read_calls(messages: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The calls of a conversation in either language, and the ids of its results."""
    calls, results = [], []
    for message in messages:
        for call in message.get("tool_calls", ()):
            calls.append(f"{call['id']} {call['function']['name']} {call['function']['arguments']}")
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block["type"] == "tool_use":
                arguments = json.dumps(block["input"], separators=(",", ":"))
                calls.append(f"{block['id']} {block['name']} {arguments}")
            elif block["type"] == "tool_result":
                results.append(block["tool_use_id"])
        if message["role"] == "tool":
            results.append(message["tool_call_id"])
    return calls, results


PICTURE = b"GIF89a\1\0\1\0\0\0\0;"


@pytest.mark.parametrize("route", ROUTES)
def test_an_image_arrives_behind_the_proxy(proxy: Proxy, route: str) -> None:
    message = Message("user", "what is it?", images=(Image("d", "image/gif", "a.gif"),))
    request = replace(conversation(message), load_image=lambda _: PICTURE)
    assert text_of(proxy.ask(route, Reply("a dot"), request)) == "a dot"
    assert base64.b64encode(PICTURE).decode() in json.dumps(proxy.messages)


@pytest.mark.parametrize("route", ROUTES)
def test_a_turn_that_is_cancelled_ends_behind_the_proxy(proxy: Proxy, route: str) -> None:
    adapter, _, model = route.partition(":")
    proxy.steps[:] = [Hang("so far")]
    proxy.upstream.closed.clear()

    async def main() -> None:
        harness = Harness(proxy.url, adapter)
        stream = harness.model.stream(harness.model.encode(replace(prompt("hi"), model=model)))
        assert await anext(stream) == Text("so far")
        await stream.aclose()
        await harness.transport.close()

    asyncio.run(main())
    assert proxy.upstream.wait_closed(1)


@pytest.mark.parametrize("route", ROUTES)
def test_a_key_that_the_proxy_does_not_know_is_named(proxy: Proxy, route: str) -> None:
    with pytest.raises(ModelRefused, match="the key came from TEST_API_KEY"):
        proxy.ask(route, Reply("hello"), key="sk-another-key")
    assert not proxy.upstream.requests


@pytest.mark.parametrize("adapter", ["openai_compatible", "anthropic"])
def test_a_model_that_the_proxy_does_not_have_is_refused(proxy: Proxy, adapter: str) -> None:
    with pytest.raises(ModelRefused, match="model=unknown"):
        proxy.ask(f"{adapter}:unknown", Reply("hello"))
    assert not proxy.upstream.requests


def test_the_proxy_lists_its_models(proxy: Proxy) -> None:
    async def main(key: str) -> list[str]:
        transport = Transport()
        try:
            return [model.id for model in await list_models(transport, "openai_compatible", proxy.url, key)]
        finally:
            await transport.close()

    assert sorted(asyncio.run(main(KEY))) == ["chat", "messages"]
    with pytest.raises(KeyRefused):
        asyncio.run(main("sk-another-key"))


def test_the_command_runs_a_tool_for_a_model_behind_the_proxy(proxy: Proxy, tmp_path: Path) -> None:
    here = home(tmp_path, url=proxy.url, config=f'model = "chat"\napi_key = "{KEY}"\nmode = "trust"\n')
    (here.project / "notes.txt").write_text("a growing pause")

    def answer(request: Received) -> Step:
        is_first = request.body["messages"][-1]["role"] == "user"
        return Reply(calls=[Call("read", {"file_path": "notes.txt"})]) if is_first else Reply("it was read")

    rule: Any = answer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proxy.upstream, "_script", rule)
        proxy.upstream.requests.clear()
        done = cru("read my notes", home=here)
    assert (done.code, done.out.strip()) == (0, "it was read"), done
    assert "a growing pause" in proxy.upstream.requests[-1].body["messages"][-1]["content"]
