from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.core.models.harness import LS, Harness, calls_of, text_of
from tests.core.models.wire import Step, broken_stream, serve, status, stream, whole

from cru.core.base.values.messages import (
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
from cru.core.models.anthropic import AnthropicReply, endpoint
from cru.core.models.exchange import SseDecoder
from cru.core.models.failures import RequestFacts
from cru.core.models.protocol import BrokenReply, ContextTooLong, ModelError, ModelRefused, ModelUnavailable


def events(*items: dict[str, Any]) -> bytes:
    return "".join(f"event: {i['type']}\ndata: {json.dumps(i, ensure_ascii=False)}\n\n" for i in items).encode()


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


START: dict[str, Any] = {
    "type": "message_start",
    "message": {"usage": {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 7}},
}
STOP: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
SIGNED = {"type": "thinking", "thinking": "żółw", "signature": "sig"}
REPLY = events(
    START,
    {"type": "ping"},
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "żó"},
        {"type": "thinking_delta", "thinking": "łw"},
        {"type": "signature_delta", "signature": "sig"},
    ),
    *block(1, {"type": "redacted_thinking", "data": "opaque"}),
    *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi 🐍"}),
    *block(
        3,
        {"type": "tool_use", "id": "t1", "name": "ls", "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"path": "'},
        {"type": "input_json_delta", "partial_json": 'gęś"}'},
    ),
    *block(4, {"type": "tool_use", "id": "t2", "name": "bash", "input": {}}),
    *STOP,
)


def read(*chunks: bytes) -> list[Delta]:
    decoder, reply, deltas = SseDecoder(), AnthropicReply(RequestFacts("anthropic", "m")), []
    for chunk in chunks:
        for data in decoder.feed(chunk):
            deltas += reply.read(data)
    return [*deltas, *reply.end()]


def ask(*steps: Step) -> list[Delta]:
    async def main() -> list[Delta]:
        async with serve(*steps) as wire:
            return await Harness(wire.url, "anthropic").ask()

    return asyncio.run(main())


def test_a_body_cut_at_any_byte_gives_the_same_reply() -> None:
    expected = read(REPLY)
    assert text_of(expected) == "Hi 🐍"
    assert calls_of(expected) == [ToolCall("t1", "ls", '{"path": "gęś"}'), ToolCall("t2", "bash", "")]
    assert [d.text for d in expected if isinstance(d, Thought)] == ["żó", "łw"]
    assert [d.block for d in expected if isinstance(d, ThoughtBlock)] == [
        Thinking("anthropic", "żółw", SIGNED),
        Thinking("anthropic", "", {"type": "redacted_thinking", "data": "opaque"}),
    ]
    assert expected[-1] == End("tool_calls", Usage(input=12, output=9, cache_read=7))
    for cut in range(len(REPLY)):
        assert read(REPLY[:cut], REPLY[cut:]) == expected, cut


def test_a_real_server_gives_the_same_reply_and_a_whole_message_too() -> None:
    assert ask(stream(*(REPLY[i : i + 7] for i in range(0, len(REPLY), 7)))) == read(REPLY)
    content = [
        SIGNED,
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "x"}},
    ]
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 3}
    deltas = ask(whole({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}))
    assert text_of(deltas) == "Hi"
    assert calls_of(deltas) == [ToolCall("t", "ls", '{"path":"x"}')]
    assert deltas[-1] == End("tool_calls", Usage(4, 2, 0, 3))


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("new", "new"),
    ],
)
def test_stop_reasons_have_our_names(reason: str, ours: str) -> None:
    body = events(
        START, {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}, {"type": "message_stop"}
    )
    assert read(body) == [End(ours, Usage(12, 1, 7))]


def test_a_stream_that_ends_early_is_a_broken_reply() -> None:
    body = events(START, *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "half"}))
    for step in (stream(body), broken_stream(body)):
        with pytest.raises(BrokenReply):
            ask(step)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, ModelUnavailable),
        ({"type": "rate_limit_error", "message": "slow"}, ModelUnavailable),
        ({"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000"}, ContextTooLong),
        ({"type": "authentication_error", "message": "bad key"}, ModelRefused),
    ],
)
def test_an_error_event_after_text_is_the_right_error(error: dict[str, Any], kind: type[ModelError]) -> None:
    text = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x"})
    with pytest.raises(kind, match=error["message"][:10]):
        ask(stream(events(START, *text, {"type": "error", "error": error})))


def test_an_overloaded_server_is_asked_again() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert text_of(ask(status(529, json.dumps(body)), stream(REPLY))) == "Hi 🐍"
    assert text_of(ask(stream(events(body)), stream(REPLY))) == "Hi 🐍"


def encoded(*messages: Message, system: tuple[Span, ...] = (), **parameters: Any) -> Any:
    model = Harness("http://127.0.0.1:1", "anthropic").model
    return json.loads(model.encode(Request("m1", system, messages, (LS,), parameters)).join())


def test_messages_become_alternating_turns_with_results_first() -> None:
    sent = encoded(
        Message("user", "a"),
        Message("user", "b"),
        Message("assistant", "", (ToolCall("c|1", "ls", '{"path": "x"}'), ToolCall("c2", "ls", "{broken"))),
        Message("tool", "files", call_id="c|1"),
        Message("tool", "", call_id="c2", is_error=True),
        Message("user", "go on"),
        Message("assistant", ""),
        Message("assistant", "  "),
        Message("user", " "),
    )
    assert sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c_1_67849aab", "name": "ls", "input": {"path": "x"}},
                {"type": "tool_use", "id": "c2", "name": "ls", "input": {"_raw": "{broken"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c_1_67849aab", "content": "files"},
                {"type": "tool_result", "tool_use_id": "c2", "is_error": True},
                {"type": "text", "text": "go on"},
            ],
        },
    ]


def test_a_result_comes_before_text_of_the_same_turn_even_if_it_was_logged_after_it() -> None:
    sent = encoded(
        Message("assistant", "", (ToolCall("c", "ls"),)), Message("user", "x"), Message("tool", "r", call_id="c")
    )
    assert [part["type"] for part in sent["messages"][1]["content"]] == ["tool_result", "text"]


def test_signed_thinking_goes_back_first_and_only_if_it_is_ours() -> None:
    thinking = (Thinking("openrouter", "no", {"x": 1}), Thinking("anthropic", "żółw", SIGNED))
    sent = encoded(Message("user", "q"), Message("assistant", "a", thinking=thinking))
    assert sent["messages"][1]["content"] == [SIGNED, {"type": "text", "text": "a"}]
    assert len(encoded(Message("user", "q"), Message("assistant", "", thinking=thinking))["messages"]) == 1


def test_caching_marks_the_system_prompt_and_the_whole_request_unless_switched_off() -> None:
    span = (Span("s", "o", "be brief"),)
    on, off = encoded(system=span), encoded(system=span, prompt_caching=False)
    mark = {"type": "ephemeral"}
    assert (on["cache_control"], on["system"]) == (mark, [{"type": "text", "text": "be brief", "cache_control": mark}])
    assert "cache_control" not in off
    assert off["system"] == [{"type": "text", "text": "be brief"}]
    assert "system" not in encoded()


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        ({}, {"max_tokens": 8192}),
        ({"max_tokens": 9, "stop": "x", "top_p": 0.5}, {"max_tokens": 9, "stop_sequences": ["x"], "top_p": 0.5}),
        ({"tool_choice": "required"}, {"tool_choice": {"type": "any"}}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "ls"}}},
            {"tool_choice": {"type": "tool", "name": "ls"}},
        ),
        ({"parallel_tool_calls": False}, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        ({"reasoning": {"effort": "high"}}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ({"reasoning": {"effort": "none"}}, {"thinking": {"type": "disabled"}}),
        (
            {"reasoning": {"max_tokens": 9000}},
            {"thinking": {"type": "enabled", "budget_tokens": 9000}, "max_tokens": 17192},
        ),
    ],
)
def test_parameters_get_anthropics_names(parameters: dict[str, Any], fields: dict[str, Any]) -> None:
    sent = encoded(**parameters)
    assert {key: sent.get(key) for key in fields} == fields


def test_models_from_before_adaptive_thinking_get_a_budget() -> None:
    model = Harness("http://127.0.0.1:1", "anthropic").model
    sent = json.loads(model.encode(Request("claude-haiku-4-5", parameters={"reasoning": {"effort": "low"}})).join())
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2048}


def test_what_the_api_cannot_take_is_left_out_and_said_once() -> None:
    harness = Harness("http://127.0.0.1:1", "anthropic")
    for seed in (1, 2):
        sent = json.loads(harness.model.encode(Request("m1", parameters={"seed": seed})).join())
        assert "seed" not in sent
    assert harness.said == ["anthropic does not take the parameter `seed`; it is left out"]


@pytest.mark.parametrize("given", ["https://h", "https://h/", "https://h/v1", "https://h/v1/", "https://h/v1/messages"])
def test_base_url_is_understood_in_every_form(given: str) -> None:
    assert endpoint(given) == "https://h/v1/messages"


def test_text_after_the_reply_is_not_lost_by_the_union_of_deltas() -> None:
    assert read(events(START, *block(0, {"type": "text", "text": "given at the start"}), *STOP))[0] == Text(
        "given at the start"
    )


@pytest.mark.parametrize("depth", [900, 1100, 200_000])
def test_arguments_however_deep_do_not_spoil_the_requests_after_them(depth: int) -> None:
    call = ToolCall("c", "ls", '{"a":' * depth + "1" + "}" * depth)
    messages = (Message("user", "hi"), Message("assistant", "", (call,)))
    body = Harness("http://127.0.0.1:1", "anthropic").model.encode(Request("m1", messages=messages)).join()
    assert b'"type":"tool_use"' in body and (b'"_raw"' in body) is (depth > 1000)
