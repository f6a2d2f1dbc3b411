"""Events that are not what the protocol says: errors in unusual places, things said twice, fragments of calls, frames without content."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.models.harness import calls_of, text_of
from tests.core.models.test_anthropic import START, STOP, block
from tests.core.models.test_anthropic import read as read_anthropic
from tests.core.models.test_openai_compatible import read
from tests.core.models.wire import delta, finish, sse

from cru.core.base.values.messages import End, Text, Thought, ThoughtBlock, ToolCall
from cru.core.models.failures import RequestFacts, error_for_status
from cru.core.models.openai_compatible import OpenAIReply
from cru.core.models.protocol import BrokenReply, ContextTooLong, ModelError, ModelRefused, ModelUnavailable

CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"x"}'}}
NULL = {"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]}
DONE = b"data: [DONE]\n\n"


def raw(*frames: str) -> bytes:
    return "".join(f"data: {frame}\n\n" for frame in frames).encode()


# ---- errors in unusual places ----


@pytest.mark.parametrize(
    ("event", "kind", "says"),
    [
        ({"object": "error", "message": "out of memory", "code": 500}, ModelUnavailable, "500: out of memory"),
        ({"object": "error", "message": "boom"}, BrokenReply, "boom"),
        ({"message": "boom", "code": "500"}, ModelUnavailable, "boom"),
        ({"message": "no such model", "code": 400}, ModelRefused, "no such model"),
        ({"detail": "overloaded"}, BrokenReply, "overloaded"),
        ({"detail": [{"loc": ["body"], "msg": "bad"}]}, BrokenReply, "bad"),
        ({"code": 503}, ModelUnavailable, "503"),
        (
            {"error": {"message": "it broke", "type": None, "param": None, "code": "500"}},
            ModelUnavailable,
            "500: it broke",
        ),
        (
            {"error": {"message": "slow down", "type": "throttling_error", "code": "429"}},
            ModelUnavailable,
            "429: slow down",
        ),
        ({"error": {"message": "no such model", "code": "404"}}, ModelRefused, "404: no such model"),
        ({"error": {"message": "boom", "code": "1261"}}, BrokenReply, "boom"),
        ({"status_code": 429, "msg": "slow down"}, ModelUnavailable, "slow down"),
        ({"type": "overloaded_error"}, ModelUnavailable, "overloaded_error"),
        ({"type": "error", "text": "it broke"}, BrokenReply, "it broke"),
        ({"choices": [], "message": "boom"}, BrokenReply, "boom"),
        ({"choices": None, "object": "error"}, BrokenReply, "error"),
        ({"errors": ["first", "second"]}, BrokenReply, "first"),
        ({"error": ["first"]}, BrokenReply, "first"),
        ({"error": {"code": "503", "message": "busy"}}, ModelUnavailable, "503: busy"),
        ({"error": {"code": "429", "message": "slow down"}}, ModelUnavailable, "429: slow down"),
        ({"error": {"code": 200, "message": "boom"}}, BrokenReply, "p: boom"),
        ({"error": {"code": -32000, "message": "boom"}}, BrokenReply, "p: boom"),
        ({"error": {"code": 1, "message": "prompt exceeds the context window"}}, ContextTooLong, "window"),
        ({"error": {"code": -32000, "message": "prompt exceeds the context window"}}, ContextTooLong, "window"),
        ({"error": 7}, BrokenReply, "7"),
        ({"choices": [{"index": 0, "error": {"message": "host died", "code": 502}}]}, ModelUnavailable, "host died"),
        ({"choices": [{"index": 0, "delta": {}, "error": "host died"}]}, BrokenReply, "host died"),
        (finish("error"), BrokenReply, "stopped with an error"),
        (finish("abort"), BrokenReply, "abort"),
        (finish("MALFORMED_FUNCTION_CALL"), BrokenReply, "MALFORMED"),
        (finish("insufficient_system_resource"), BrokenReply, "insufficient_system_resource"),
    ],
)
def test_an_error_is_one_wherever_it_stands(event: Any, kind: type[ModelError], says: str) -> None:
    with pytest.raises(kind, match=says) as caught:
        read(sse(delta(content="half"), delta(tool_calls=[CALL]), event))
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("body", "is_wrong"),
    [
        ({"error": {"message": "No connected db.", "type": "no_db_connection", "param": None, "code": "400"}}, True),
        ({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}, True),
        ([{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}], True),
        ({"code": "Client specified an invalid argument", "error": "Incorrect API key provided: sk***xx."}, True),
        ({"error": {"message": "invalid argument: the key of a tool", "code": "400"}}, False),
    ],
)
def test_a_wrong_key_that_is_answered_with_400_is_named(body: Any, is_wrong: bool) -> None:
    error = error_for_status(RequestFacts("p", "m", "TEST_KEY"), 400, json.dumps(body).encode())
    assert type(error) is ModelRefused and ("the key came from TEST_KEY" in error.hint) == is_wrong


JINJA = (
    "Unable to generate parser for this template. Jinja Exception: Conversation roles must alternate user/assistant/..."
)


@pytest.mark.parametrize(
    ("status", "text", "hint"),
    [
        (400, JINJA, "--chat-template"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/...", "--chat-template"),
        (400, 'Error rendering prompt with jinja template: "Tool call IDs should be ..."', "--chat-template"),
        (400, "default chat template is no longer allowed, so you must provide a chat template", "--chat-template"),
        (
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "images = false",
        ),
        (404, "No endpoints found that support image input", "images = false"),
        (400, "Invalid content type. image_url is only supported by certain models.", "images = false"),
        (400, "Failed to deserialize the JSON body: unknown variant `image_url`, expected `text`", "images = false"),
        (400, "mock is not a multimodal model", "images = false"),
        (400, "Model does not support images", "images = false"),
        (404, "no such model", "model id"),
    ],
)
def test_what_a_server_cannot_take_is_not_asked_again(status: int, text: str, hint: str) -> None:
    error = error_for_status(RequestFacts("p", "m"), status, json.dumps({"error": {"message": text}}).encode())
    assert type(error) is ModelRefused and not error.retryable
    assert hint in error.hint


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_be_taken_later_is_asked_again(status: int) -> None:
    text = "too many requests with image input" if status == 429 else "the image of the container is gone"
    error = error_for_status(RequestFacts("p", "m"), status, json.dumps({"error": {"message": text}}).encode())
    assert type(error) is ModelUnavailable and error.retryable


@pytest.mark.parametrize("event", [NULL, {**NULL, "choices": [{**NULL["choices"][0], "delta": {}}]}])
def test_a_server_that_gives_reasons_and_gave_none_has_not_finished(event: Any) -> None:
    with pytest.raises(BrokenReply, match="ended early"):
        read(sse(event))
    with pytest.raises(BrokenReply, match="ended early"):
        read(sse(event, delta(tool_calls=[CALL]), event))


def test_a_server_that_knows_no_reasons_has_finished_with_its_end_mark() -> None:
    assert read(sse(delta(content="a"))) == [Text("a"), End("stop")]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "ping"},
        {"type": "keepalive"},
        {},
        {"choices": []},
        {"choices": [], "usage": None},
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        {"error": None},
        {"error": ""},
        {"error": {}},
        {"error": {"code": 0, "message": "", "type": ""}},
        {"choices": [{"index": 0, "delta": {}, "error": ""}]},
        {"error": False},
        {"code": 200},
    ],
)
def test_events_about_the_request_are_no_errors(event: Any) -> None:
    deltas = read(sse(event, delta(content="a"), event, finish()))
    assert (text_of(deltas), type(deltas[-1])) == ("a", End)


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "error", "message": "overloaded"}],
        [{"type": "failed", "code": 529}],
        [{"type": "message_stop"}],
        [{"type": "message_delta", "delta": {"stop_reason": "error"}}, {"type": "message_stop"}],
        [{"type": "message_delta", "delta": {"stop_reason": "ABORTED"}}, {"type": "message_stop"}],
        [{"type": "message_delta", "delta": {"stop_reason": None}}, {"type": "message_stop"}],
    ],
)
def test_a_message_without_a_good_stop_reason_is_no_reply(events: list[dict[str, Any]]) -> None:
    with pytest.raises(ModelError):
        read_anthropic(sse(START, *block(0, {"type": "text", "text": "half"}), *events, done=False))


# ---- the same thing said twice ----


def message(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": "stop"}]}


WHOLE = {"content": "hello", "tool_calls": [CALL], "reasoning_content": "hm"}


@pytest.mark.parametrize(
    "events",
    [
        [delta(reasoning_content="hm"), delta(content="hel"), delta(content="lo"), delta(tool_calls=[CALL]), message(**WHOLE)],
        [delta(role="assistant"), message(**WHOLE)],
        [message(**WHOLE), message(**WHOLE)],
        [message(reasoning_content="hm", content="hel"), message(content="hello"), message(**WHOLE)],
        [message(reasoning_content="hm", content="hel"), message(content="lo", tool_calls=[CALL])],
        [delta(reasoning_content="hm"), delta(content="hello"), message(content="hello", tool_calls=[CALL])],
        [{"choices": [{"index": 0, "delta": WHOLE, "message": WHOLE, "finish_reason": "stop"}]}],
        [{"choices": [{"index": 0, "delta": {"content": ""}, "message": WHOLE, "finish_reason": "stop"}]}],
        [delta(**WHOLE), {"choices": [{"delta": {}, "message": WHOLE, "finish_reason": "stop"}]}],
        [delta(**WHOLE), delta(tool_calls=[{**CALL, "function": {"name": "ls", "arguments": '{"path":"x"}'}}]), finish()],
        [delta(**WHOLE), delta(tool_calls=[{"index": 0, "function": {"arguments": '{"path":"x"}'}}]), finish()],
    ],
)  # fmt: skip
def test_what_is_said_twice_counts_once(events: list[Any]) -> None:
    deltas = read(sse(*events))
    assert text_of(deltas) == "hello"
    assert calls_of(deltas) == [ToolCall("c1", "ls", '{"path":"x"}')]
    assert "".join(d.text for d in deltas if isinstance(d, Thought)) == "hm"
    assert deltas[-1] == End("tool_calls")


USE = {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "x"}}
PIECES = [{"type": "input_json_delta", "partial_json": p} for p in ('{"path"', ':"x"}')]


@pytest.mark.parametrize(
    "events",
    [
        [*block(0, USE)],
        [*block(0, USE, *PIECES)],
        [*block(0, {**USE, "input": {}}, *PIECES)],
        [*block(0, USE)[:1]],
        [*block(0, USE), {"type": "message", "content": [USE], "stop_reason": "tool_use"}],
    ],
)
def test_an_input_that_comes_whole_and_in_pieces_counts_once(events: list[dict[str, Any]]) -> None:
    assert calls_of(read_anthropic(sse(START, *events, *STOP, done=False))) == [ToolCall("t1", "ls", '{"path":"x"}')]


# ---- which call a fragment belongs to ----


def part(index: int | None, identity: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    call: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    return call | ({} if index is None else {"index": index}) | ({} if identity is None else {"id": identity})


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        ([part(0, "", "ls", "{}"), part(0, "", "pwd", "{}")], ["ls {}", "pwd {}"]),
        ([part(0, None, "ls", "{}"), part(0, None, "ls", "{}")], ["ls {}", "ls {}"]),
        ([part(0, None, "ls", {}), part(0, None, "pwd", {})], ["ls {}", "pwd {}"]),
        (
            [part(0, "", "ls"), part(0, "", None, '{"a":'), part(0, "", None, "1}"), part(0, "", "cat"), part(0, "", None, "{}")],
            ['ls {"a":1}', "cat {}"],
        ),
        ([part(0, "a", "ls", '{"a":1}'), part(0, None, None, '{"a":2}')], ['ls {"a":1}', 'ls {"a":2}']),
        ([part(0, "a", "ls", '{"a":1}'), part(0, "a", "ls", '{"a":2}')], ['ls {"a":1}', 'ls {"a":2}']),
        ([part(0, "a", "ls", '{"a":'), part(0, "a", "ls", '{"b":1}'), part(0, "a", "ls", "}")], ['ls {"a":{"b":1}}']),
        ([part(0, "a", "ls", '{"a":'), part(0, "b", "ls", "1"), part(0, "c", "ls", "}")], ['ls {"a":1}']),
        (
            [part(0, "a", "ls", '{"a'), part(0, "b", "ls", '{"b'), part(0, "a", None, '":1}'), part(0, "b", "ls", '":2}')],
            ['ls {"a":1}', 'ls {"b":2}'],
        ),
        (
            [part(None, "a", "ls", "{"), part(None, "b", "cat", "{"), part(None, "a", "ls", "}"), part(None, "b", None, "}")],
            ["ls {}", "cat {}"],
        ),
        ([part(0, "a", "ls", "{}"), part(0, "b", "cat", "{}"), part(0, "a", "ls", "{}")], ["ls {}", "cat {}"]),
        ([part(0, "a", "ba"), part(0, None, "sh"), part(0, None, None, "{}")], ["bash {}"]),
        ([part(0, "a", "ba"), part(0, "a", "bash"), part(0, "a", "bash", "{}")], ["bash {}"]),
        ([part(0, "a", "ls", "{"), part(0, None, "ls", "}"), part(0, None, "ls", "")], ["ls {}"]),
        ([part(0, "a", "ls", "{"), part(None, None, None, "}")], ["ls {}"]),
        ([part(0, "a", "ls", ""), part(1, "a", None, "{}")], ["ls {}"]),
        ([part(0, "a", "ls", "{}"), part(0, "a", "ls", " ")], ["ls {}"]),
        ([part(0, "a", "ls", "{}"), part(1, "a", "pwd", "{}")], ["ls {}", "pwd {}"]),
        ([part(1, "a", "ls"), part(2, "b", "cat"), part(1, None, None, "{}"), part(2, None, None, "{}")], ["ls {}", "cat {}"]),
        ([part(None, None, "ls"), part(None, None, "pwd")], ["ls ", "pwd "]),
        ([part(None, None, "ls", '{"a":1'), part(None, None, "pwd", "{}")], ['ls {"a":1', "pwd {}"]),
        ([part(0, "a", "ls", "{}"), part(0, "b", "ls", "{}")], ["ls {}", "ls {}"]),
    ],
)  # fmt: skip
def test_a_fragment_belongs_to_the_call_that_it_fits(parts: list[Any], calls: list[str]) -> None:
    together = calls_of(read(sse(delta(tool_calls=parts), finish("tool_calls"))))
    apart = calls_of(read(sse(*(delta(tool_calls=[each]) for each in parts), finish("tool_calls"))))
    for found in (together, apart):
        assert [f"{call.name} {call.arguments}" for call in found] == calls
        assert len({call.id for call in found}) == len(calls) and all(call.id for call in found)


def test_calls_of_blocks_with_one_index_are_told_apart() -> None:
    uses = [{"type": "tool_use", "id": f"t{n}", "name": "ls", "input": {}} for n in (1, 2)]
    piece = {"type": "input_json_delta", "partial_json": "{}"}
    found = calls_of(read_anthropic(sse(START, *(e for use in uses for e in block(0, use, piece)), *STOP, done=False)))
    assert found == [ToolCall("t1", "ls", "{}"), ToolCall("t2", "ls", "{}")]


@pytest.mark.parametrize("identity", ["t1", ""])
def test_calls_of_blocks_with_one_id_are_told_apart(identity: str) -> None:
    uses: list[dict[str, Any]] = [
        {"type": "tool_use", "id": identity, "name": name, "input": {}} for name in ("ls", "pwd")
    ]
    piece = {"type": "input_json_delta", "partial_json": "{}"}
    events = [event for index, use in enumerate(uses) for event in block(index, use, piece)]
    found = calls_of(read_anthropic(sse(START, *events, *STOP, done=False)))
    assert [f"{call.name} {call.arguments}" for call in found] == ["ls {}", "pwd {}"]
    assert len({call.id for call in found}) == 2 and all(call.id for call in found)


def test_a_block_that_begins_twice_is_one_call() -> None:
    begin, *rest = block(0, {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}, *PIECES)
    found = calls_of(read_anthropic(sse(START, begin, begin, *rest, *STOP, done=False)))
    assert found == [ToolCall("t1", "ls", '{"path":"x"}')]


def test_complete_arguments_are_looked_for_a_limited_number_of_times() -> None:
    reply = OpenAIReply(RequestFacts("p", "m"))
    reply.read(json.dumps(delta(tool_calls=[part(0, "a", "ls", '{"a":"')])).encode())
    for _ in range(500):
        for piece in ("}", "{"):
            reply.read(json.dumps(delta(tool_calls=[part(0, None, None, piece)])).encode())
    (known,) = reply._calls._known
    assert known.checks == 64 and len("".join(known.pieces)) == 1006


def test_encrypted_blocks_with_ids_of_their_own_are_kept_apart() -> None:
    """Gemini signs each of several calls, all with index 0, and takes a joined signature for a corrupted one."""
    parts = [("a", "s1"), (None, "s2"), ("b", "t1"), ("b", "t2"), ("", "t3")]
    details = [{"type": "reasoning.encrypted", "index": 0, "id": identity, "data": data} for identity, data in parts]
    deltas = read(sse(*(delta(reasoning_details=[each]) for each in details), finish()))
    [kept] = [d.block.data["reasoning_details"] for d in deltas if isinstance(d, ThoughtBlock)]
    assert [(each["id"], each["data"]) for each in kept] == [("a", "s1s2"), ("b", "t1t2t3")]


# ---- frames without content, fields of another type ----


@pytest.mark.parametrize(
    "frame",
    [
        b"data:\n\n",
        b"data\n\n",
        b"data:  \n\n",
        b"data: null\n\n",
        b"data:\ndata:\n\n",
        raw('{"choices":[null]}'),
        raw('{"choices":[{"index":0,"delta":{"reasoning":7}}]}'),
        raw('{"choices":[{"index":null,"delta":{"role":1}}]}'),
        raw('{"choices":[{"index":0,"delta":{"refusal":{},"reasoning_details":"x","tool_calls":{}}}]}'),
        raw('{"choices":[{"index":0,"delta":{"content":false}}],"usage":5}'),
        raw('{"choices":[{"index":0,"delta":null,"finish_reason":false}]}'),
    ],
)
def test_frames_without_content_are_ignored(frame: bytes) -> None:
    deltas = read(frame, sse(delta(content="a"), done=False), frame, sse(finish()))
    assert deltas == [Text("a"), End("stop")]


def test_fields_of_another_type_do_not_take_those_beside_them() -> None:
    fields = {"content": "a", "reasoning": 3, "tool_calls": [{**CALL, "id": 5, "index": "0"}]}
    deltas = read(sse({"choices": [{"index": "0", "delta": fields}], "usage": "x"}, finish()))
    assert text_of(deltas) == "a"
    assert [(c.name, c.arguments) for c in calls_of(deltas)] == [("ls", '{"path":"x"}')]


@pytest.mark.parametrize("mark", [b"data: [DONE] \n\n", b"data:[DONE]\n\n", b"data:  [DONE]\r\n\r\n"])
def test_the_end_mark_may_have_blanks(mark: bytes) -> None:
    assert read(sse(delta(content="a"), done=False), mark) == [Text("a"), End("stop")]


@pytest.mark.parametrize(
    "frame",
    [
        '{"choices":[{"delta":{"content":5}}]}', '{"choices":7}', '{"choices":["x"]}', "7", '"text"', "[1]",
        '{"choices":[{"delta":{"tool_calls":[{"function":{"name":7}}]}}]}', '{"choices":[{"finish_reason":7}]}',
    ],
)  # fmt: skip
def test_what_is_needed_must_be_readable(frame: str) -> None:
    with pytest.raises(BrokenReply, match="cannot understand"):
        read(raw(frame), sse(finish()))


@pytest.mark.parametrize(
    "frame",
    [b"data:\n\n", b"data: null\n\n", DONE, raw('{"type":"ping","index":"x"}'), raw('{"type":"new_kind"}'),
     raw('{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null,"signature":null}}')],
)  # fmt: skip
def test_frames_without_content_are_ignored_in_anthropics_language_too(frame: bytes) -> None:
    text = block(0, {"type": "text", "text": "a", "citations": None, "id": None})
    deltas = read_anthropic(frame, sse(START, *text, done=False), frame, sse(*STOP, done=False))
    assert text_of(deltas) == "a"
