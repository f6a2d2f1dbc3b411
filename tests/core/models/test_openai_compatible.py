from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.core.models.harness import KEY, LS, Harness, calls_of, request_of, text_of
from tests.core.models.wire import Step, broken_stream, delta, finish, open_stream, serve, sse, status, stream, whole
from tests.kit.waiting import PATIENCE

from cru.core.base.values.messages import (
    CallPart,
    Delta,
    End,
    Message,
    Request,
    Span,
    Text,
    Thinking,
    Thought,
    ThoughtBlock,
    ToolCall,
    Usage,
)
from cru.core.models.exchange import SseDecoder
from cru.core.models.failures import RequestFacts
from cru.core.models.openai_compatible import OpenAIReply, endpoint
from cru.core.models.protocol import (
    BrokenReply,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OutOfCredit,
)

CALLS = sse(
    delta(role="assistant", content="Zażółć 🐍"),
    delta(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": ""}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '{"path": "gęś'}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '"}'}}]),
    delta(tool_calls=[{"index": 1, "id": "c2", "function": {"name": "bash", "arguments": "{}"}}]),
    finish("tool_calls"),
)


def ask(*steps: Step, provider: str = "openai_compatible", request: Request | None = None) -> list[Delta]:
    async def main() -> list[Delta]:
        async with serve(*steps) as wire:
            return await Harness(wire.url, provider).ask(request)

    return asyncio.run(main())


def read(*chunks: bytes) -> list[Delta]:
    """A body through the decoder and the reader, without a server."""
    decoder, reply, deltas = SseDecoder(), OpenAIReply(RequestFacts("p", "m")), []
    for chunk in chunks:
        for data in decoder.feed(chunk):
            deltas += reply.read(data)
    return [*deltas, *reply.end()]


def test_a_body_cut_at_any_byte_gives_the_same_reply() -> None:
    expected = read(CALLS)
    assert text_of(expected) == "Zażółć 🐍"
    assert calls_of(expected) == [ToolCall("c1", "ls", '{"path": "gęś"}'), ToolCall("c2", "bash", "{}")]
    for cut in range(len(CALLS)):
        assert read(CALLS[:cut], CALLS[cut:]) == expected, cut


def test_a_real_server_that_sends_single_bytes_gives_the_same_reply() -> None:
    deltas = ask(stream(*(CALLS[i : i + 1] for i in range(len(CALLS)))))
    assert deltas == read(CALLS)
    assert deltas[-1] == End("tool_calls")


def test_text_comes_as_it_is_sent_and_keep_alives_are_no_text() -> None:
    body = [
        b": OPENROUTER PROCESSING\n\n",
        sse(delta(content="a"), done=False),
        b":\n\n",
        sse(delta(content="b"), finish()),
    ]
    assert ask(stream(*body)) == [Text("a"), Text("b"), End("stop")]


@pytest.mark.parametrize(
    "calls",
    [
        [{"index": 0, "id": "a", "function": {"name": "ls"}}, {"index": 0, "id": "b", "function": {"name": "ls"}}],
        [{"id": "a", "function": {"name": "ls"}}, {"id": "b", "function": {"name": "ls"}}],
        [{"function": {"name": "ls", "arguments": {}}}, {"function": {"name": "ls", "arguments": {}}}],
    ],
    ids=["index 0 for all", "no index", "neither index nor id"],
)
def test_calls_are_told_apart_however_a_server_numbers_them(calls: list[dict[str, Any]]) -> None:
    found = calls_of(read(sse(delta(tool_calls=calls), finish("stop"))))
    assert [call.name for call in found] == ["ls", "ls"]
    assert len({call.id for call in found}) == 2


def test_arguments_given_as_an_object_become_text_and_a_repeated_name_is_not_doubled() -> None:
    first = {"index": 0, "id": "a", "function": {"name": "ls", "arguments": {"path": "x"}}}
    again = {"index": 0, "id": "a", "function": {"name": "ls", "arguments": ""}}
    deltas = read(sse(delta(tool_calls=[first]), delta(tool_calls=[again]), finish()))
    assert calls_of(deltas) == [ToolCall("a", "ls", '{"path":"x"}')]
    assert deltas[-1] == End("tool_calls")


def test_a_whole_message_instead_of_deltas_is_understood() -> None:
    message = {"role": "assistant", "content": "all at once", "tool_calls": [{"id": "a", "function": {"name": "ls"}}]}
    event = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    streamed, plain = (
        ask(stream(sse(event))),
        ask(whole({**event, "usage": {"prompt_tokens": 3, "completion_tokens": 2}})),
    )
    assert text_of(streamed) == text_of(plain) == "all at once"
    assert calls_of(streamed) == calls_of(plain) == [ToolCall("a", "ls", "")]
    assert plain[-1] == End("tool_calls", Usage(3, 2))


def test_half_an_emoji_does_not_break_the_reply() -> None:
    cut = b'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n'
    assert text_of(read(cut, sse(finish()))) == "a\ufffd"


def test_a_key_with_a_line_break_is_refused_before_anything_is_sent() -> None:
    async def main() -> None:
        async with serve() as wire:
            harness = Harness(wire.url)
            harness.model._exchange._headers = {"authorization": "Bearer a\nb"}
            with pytest.raises(ModelRefused, match="line break"):
                await harness.ask()
            assert (wire.requests, harness.waits) == ([], [])

    asyncio.run(main())


def test_content_in_parts_and_refusals_are_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    deltas = read(sse(delta(content=parts), delta(refusal="no"), finish()))
    assert text_of(deltas) == "abno"
    assert isinstance(deltas[-1], End) and deltas[-1].reason == "refusal"


def test_an_empty_reply_is_an_end_and_nothing_else() -> None:
    assert ask(stream(sse(finish()))) == [End("stop")]
    assert ask(stream(sse(delta(content=""), finish()))) == [End("stop")]


def test_a_stream_that_ends_without_done_is_whole_if_it_gave_a_reason() -> None:
    assert ask(stream(sse(delta(content="a"), finish(), done=False))) == [Text("a"), End("stop")]


@pytest.mark.parametrize(
    "step", [stream(sse(delta(content="a"), done=False)), broken_stream(sse(delta(content="a"), done=False))]
)
def test_a_stream_that_ends_without_a_reason_is_a_broken_reply(step: Step) -> None:
    with pytest.raises(BrokenReply):
        ask(step)


def test_a_reply_that_is_not_the_protocol_is_shown_and_not_asked_for_again() -> None:
    with pytest.raises(BrokenReply, match=r"cannot understand.*<html>"):
        ask(stream(b"data: <html>\n\n"))
    with pytest.raises(BrokenReply, match="cannot understand"):
        ask(whole({"unexpected": True}))


@pytest.mark.parametrize(
    ("field", "kept"),
    [
        ({"reasoning_content": "hm"}, {"reasoning_content": "hmhm"}),
        ({"reasoning": "hm"}, {}),
        (
            {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.text", "text": "hmhm", "index": 0}]},
        ),
        (
            {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s"}]},
            {"reasoning_details": [{"type": "reasoning.text", "text": "hmhm", "index": 0, "signature": "s"}]},
        ),
    ],
)
def test_reasoning_is_shown_and_kept_as_the_provider_wants_it_back(field: dict[str, Any], kept: dict[str, Any]) -> None:
    deltas = read(sse(delta(**field), delta(**field), delta(content="x"), finish()))
    assert [d.text for d in deltas if isinstance(d, Thought)] == ["hm", "hm"]
    assert deltas[-2:] == [ThoughtBlock(Thinking("p", "hmhm", kept)), End("stop")]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(9, 2, 5)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(9, 2, 4)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "cost": 0.5,
                "prompt_tokens_details": {"cache_write_tokens": 3},
            },
            Usage(9, 2, 0, 3, 0.5),
        ),
        ({"prompt_tokens": None, "completion_tokens": 1, "prompt_tokens_details": None}, Usage(0, 1)),
    ],
)
def test_usage_counts_cache_reads_and_writes(usage: dict[str, Any], expected: Usage) -> None:
    assert read(sse(finish(), {"choices": [], "usage": usage}))[-1] == End("stop", expected)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        ({"message": "busy", "code": 503}, ModelUnavailable, "busy"),
        ({"message": "busy", "code": "rate_limit_exceeded"}, ModelUnavailable, "busy"),
        ({"message": "too big", "code": "context_length_exceeded"}, ContextTooLong, "too big"),
        ({"message": "bad", "code": 400, "metadata": {"raw": "host said no"}}, ModelRefused, "host said no"),
        ("plain words", BrokenReply, "plain words"),
    ],
)
def test_an_error_object_in_the_stream_is_the_right_error(error: Any, kind: type[ModelError], says: str) -> None:
    body = sse(delta(content="so far"), {"error": error}, done=False)
    with pytest.raises(kind, match=says) as caught:
        ask(stream(body))
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (400, {"error": {"message": "max is 8k", "code": "context_length_exceeded"}}, ContextTooLong),
        (400, {"error": {"message": "This endpoint's maximum context length is 8192 tokens"}}, ContextTooLong),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "exceeds the available context size",
                    "type": "exceed_context_size_error",
                }
            },
            ContextTooLong,
        ),
        (413, "Payload Too Large", ContextTooLong),
        (400, {"error": {"message": "no such parameter"}}, ModelRefused),
        (400, {"detail": "vllm style"}, ModelRefused),
        (401, {"error": {"message": f"bad key {KEY}"}}, ModelRefused),
        (402, {"error": {"message": "no credit"}}, OutOfCredit),
        (404, "<html>not found</html>", ModelRefused),
        (400, {"error": {"message": "no", "code": "content_filter"}}, ContentRefused),
        (403, {"error": {"message": "x requires moderation on OpenRouter"}}, ContentRefused),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, OutOfCredit),
    ],
)
def test_statuses_become_errors_with_the_providers_words_and_never_the_key(
    code: int, body: Any, kind: type[ModelError]
) -> None:
    with pytest.raises(kind) as caught:
        ask(status(code, body if isinstance(body, str) else json.dumps(body)))
    assert type(caught.value) is kind
    assert str(code) in caught.value.message
    assert KEY not in str(caught.value)
    if code == 401:
        assert "TEST_API_KEY" in caught.value.hint


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ("http://h:1/api/v1/chat/completions/", "http://h:1/api/v1/chat/completions"),
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("https://h/openai/x?api-version=1", "https://h/openai/x/chat/completions?api-version=1"),
    ],
)
def test_base_url_is_understood_in_every_form(given: str, url: str) -> None:
    assert endpoint(given) == url


def test_the_body_has_messages_last_and_says_what_was_asked() -> None:
    request = Request(
        "m1",
        (Span("a", "x", "be brief"), Span("b", "y", "be kind")),
        (
            Message("user", "hi"),
            Message("assistant"),
            Message("assistant", "text", (ToolCall("c1", "ls", '{"path"'),)),
            Message("tool", "files", call_id="c1"),
        ),
        (LS,),
        {"temperature": 0.5, "parallel_tool_calls": False, "prompt_caching": True, "reasoning": {"effort": "low"}},
    )
    body = Harness("http://127.0.0.1:1").model.encode(request).join()
    assert body.index(b'"messages"') > body.index(b'"tools"') > body.index(b'"model"')
    sent = json.loads(body)
    assert sent["messages"] == [
        {"role": "system", "content": "be brief\n\nbe kind"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "text",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"_raw":"{\\"path\\""}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "files"},
    ]
    assert (sent["temperature"], sent["parallel_tool_calls"], sent["reasoning_effort"]) == (0.5, False, "low")
    assert sent["stream_options"] == {"include_usage": True}
    assert "prompt_caching" not in sent


def test_openrouter_gets_its_own_fields() -> None:
    model = Harness("http://127.0.0.1:1", "openrouter").model
    parameters = {"reasoning": {"effort": "low", "exclude": True}}
    sent = json.loads(model.encode(Request("anthropic/claude-x", parameters=parameters)).join())
    assert (sent["usage"], sent["reasoning"]) == ({"include": True}, parameters["reasoning"])
    assert sent["cache_control"] == {"type": "ephemeral"}
    assert "stream_options" not in sent
    off = json.loads(model.encode(Request("anthropic/claude-x", parameters={"prompt_caching": False})).join())
    assert "cache_control" not in off


def test_openai_itself_gets_max_completion_tokens_and_hears_of_no_exclude_once() -> None:
    harness = Harness("http://127.0.0.1:1", "openai")
    for limit in (5, 6):
        parameters = {"max_tokens": limit, "reasoning": {"effort": "low", "exclude": True}}
        sent = json.loads(harness.model.encode(Request("gpt-5", parameters=parameters)).join())
        assert (sent["max_completion_tokens"], sent["reasoning_effort"]) == (limit, "low")
        assert not {"max_tokens", "reasoning"} & sent.keys()
    assert harness.said == ["openai does not take the parameter `reasoning.exclude`; it is left out"]


def test_reasoning_goes_back_only_to_the_provider_that_made_it() -> None:
    thinking = (
        Thinking("openrouter", "hm", {"reasoning_details": [{"text": "hm"}]}),
        Thinking("anthropic", "x", {"type": "thinking"}),
    )
    request = Request("m1", messages=(Message("assistant", "a", thinking=thinking),))
    same = json.loads(Harness("http://127.0.0.1:1", "openrouter").model.encode(request).join())
    other = json.loads(Harness("http://127.0.0.1:1", "openai").model.encode(request).join())
    assert same["messages"] == [{"role": "assistant", "content": "a", "reasoning_details": [{"text": "hm"}]}]
    assert other["messages"] == [{"role": "assistant", "content": "a"}]


@pytest.mark.parametrize("after_first_delta", [False, True])
def test_cancelling_closes_the_connection_at_once(after_first_delta: bool) -> None:
    async def main() -> None:
        async with serve(open_stream(*([sse(delta(content="a"), done=False)] if after_first_delta else []))) as wire:
            harness = Harness(wire.url)
            task = asyncio.create_task(harness.ask())
            seen = await wire.until(1)
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(PATIENCE):
                await seen.gone.wait()

    asyncio.run(main())


def test_leaving_the_loop_early_closes_the_connection_too() -> None:
    async def main() -> None:
        async with serve(open_stream(sse(delta(content="a"), done=False))) as wire:
            harness = Harness(wire.url)
            deltas = harness.model.stream(harness.model.encode(request_of("hi")))
            assert await anext(deltas) == Text("a")
            await deltas.aclose()
            async with asyncio.timeout(PATIENCE):
                await wire.requests[0].gone.wait()

    asyncio.run(main())


def test_requests_share_one_connection() -> None:
    async def main() -> None:
        reply = sse(
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}]), finish()
        )
        async with serve(*[stream(reply)] * 3) as wire:
            harness = Harness(wire.url)
            for _ in range(3):
                body = harness.model.encode(request_of("hi"))
                parts = [d async for d in harness.model.stream(body) if isinstance(d, CallPart)]
                assert len(parts) == 1
            await harness.transport.close()
            assert (wire.connections, len(wire.requests)) == (1, 3)
            assert wire.requests[0].headers["authorization"] == f"Bearer {KEY}"

    asyncio.run(main())
