"""What models, MCP servers and handlers wrote goes out as strict servers take it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.core.models.harness import Harness
from tests.core.models.test_encode import PROVIDERS, model_of
from tests.kit.growth import assert_linear

from cru.core.base.values.messages import Message, Request, Thinking, ToolCall, ToolSpec
from cru.core.models.valid_history import join_neighbours

ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


def sent(provider: str, *messages: Message, tools: tuple[ToolSpec, ...] = ()) -> Any:
    return json.loads(model_of(provider).encode(Request("m1", messages=messages, tools=tools)).join())


def chat(*messages: Message) -> Any:
    return sent("openai", *messages)["messages"]


def round_of(*calls: ToolCall) -> tuple[Message, ...]:
    return (
        Message("user", "go"),
        Message("assistant", "", calls),
        *(Message("tool", f"result of {number}", call_id=call.id) for number, call in enumerate(calls)),
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a":1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ("{bad", {"_raw": "{bad"}),
        ('{"a":1}{"b":2}', {"_raw": '{"a":1}{"b":2}'}),
        ("[1]", {"_raw": "[1]"}),
        ("null", {"_raw": "null"}),
        ('"text"', {"_raw": '"text"'}),
        ("[" * 100_000, {"_raw": "[" * 100_000}),
        ('{"a":1e999}', {"_raw": '{"a":1e999}'}),
        ('{"a":[-1e999]}', {"_raw": '{"a":[-1e999]}'}),
        ('{"a":' + "9" * 5000 + "}", {"_raw": '{"a":' + "9" * 5000 + "}"}),
        ('{"a":12345678901234567890}', {"a": 12345678901234567890}),
        ('{"a":"\\ud83d"}', {"_raw": '{"a":"\\ud83d"}'}),
    ],
)
def test_arguments_go_out_as_an_object(arguments: str, expected: dict[str, object]) -> None:
    messages = round_of(ToolCall("c1", "ls", arguments))
    assert json.loads(chat(*messages)[1]["tool_calls"][0]["function"]["arguments"]) == expected
    assert sent("anthropic", *messages)["messages"][1]["content"][0]["input"] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__files__read-1", "mcp__files__read-1"),
        ("bash<|channel|>commentary", "bash__channel__commentary"),
        ("", "unknown_tool"),
        ("x" * 200, "x" * 64),
        ("żółw", "___w"),
        ("a b.c", "a_b_c"),
    ],
)
def test_names_go_out_with_the_characters_that_servers_take(name: str, expected: str) -> None:
    messages = round_of(ToolCall("c1", name, "{}"))
    assert chat(*messages)[1]["tool_calls"][0]["function"]["name"] == expected
    assert sent("anthropic", *messages)["messages"][1]["content"][0]["name"] == expected


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("", "c1"),
        ("a b", "a|b"),
        ("x" * 200, "x" * 201),
        ("chatcmpl-tool-" + "0" * 32, "chatcmpl-tool-" + "0" * 31 + "1"),
        ("x" * 41, "x" * 42),
        ("call_1", "call-1"),
        ("é", "è"),
    ],
)
def test_ids_go_out_valid_and_different_and_their_results_with_them(provider: str, first: str, second: str) -> None:
    _, asked, *results = sent(provider, *round_of(ToolCall(first, "ls"), ToolCall(second, "ls")))["messages"]
    if provider == "anthropic":
        ids = [block["id"] for block in asked["content"]]
        found = [block["tool_use_id"] for block in results[0]["content"]]
    else:
        ids = [call["id"] for call in asked["tool_calls"]]
        found = [result["tool_call_id"] for result in results]
    assert ids == found and len(set(ids)) == 2
    assert all(ID.fullmatch(identity) for identity in ids)


@pytest.mark.parametrize("identity", ["functions.ls:0", "functions.mcp__files__create_or_replace:0", "c" * 40])
def test_ids_that_a_model_wants_back_are_kept(identity: str) -> None:
    asked, result = chat(*round_of(ToolCall(identity, "ls")))[1:]
    assert asked["tool_calls"][0]["id"] == result["tool_call_id"] == identity


@pytest.mark.parametrize("identity", ["tool_mcp__files__create_or_replace_mL716LwhunURIXx4", "call 1", "c1"])
def test_signatures_name_their_calls_by_the_ids_that_go_out(identity: str) -> None:
    block = {"type": "reasoning.encrypted", "data": "s", "id": identity}
    details = [{"type": "reasoning.text", "text": "hm"}, block, {**block, "id": "rs_1"}]
    thinking = (Thinking("openai", "hm", {"reasoning_details": details}),)
    one_round = [
        Message("user", "go"),
        Message("assistant", "", (ToolCall(identity, "ls"),), thinking=thinking),
        Message("tool", "x", call_id=identity),
    ]
    found = [message for message in chat(*one_round, *one_round) if "tool_calls" in message]
    ids = [message["tool_calls"][0]["id"] for message in found]
    assert [message["reasoning_details"][1]["id"] for message in found] == ids and len(set(ids)) == 2
    assert all(message["reasoning_details"][::2] == details[::2] for message in found)


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        ("u u", "user"),
        ("u a u u", "user assistant user"),
        ("u a a", "user assistant"),
        ("u empty u", "user"),
        ("u calls t1 t2 a", "user assistant tool tool assistant"),
        ("u calls t1 a", "user assistant tool tool assistant"),
        ("u calls u", "user assistant tool tool user"),
        ("u calls", "user assistant tool tool"),
        ("t1 a", "user assistant"),
        ("u t1", "user"),
        ("u calls t1 t2 t1", "user assistant tool tool user"),
    ],
)
def test_roles_alternate_and_every_call_has_its_result(messages: str, roles: str) -> None:
    kinds = {
        "u": Message("user", "hi"),
        "a": Message("assistant", "yes"),
        "empty": Message("assistant"),
        "calls": Message("assistant", "", (ToolCall("1", "ls"), ToolCall("2", "ls"))),
        "t1": Message("tool", "one", call_id="1"),
        "t2": Message("tool", "two", call_id="2"),
    }
    conversation = [kinds[word] for word in messages.split()]
    found = chat(*conversation)
    assert " ".join(message["role"] for message in found) == roles
    text = json.dumps(found)
    assert all(
        text.count(word) >= messages.split().count(kind) for kind, word in (("u", "hi"), ("t1", "one"), ("t2", "two"))
    )
    blocks = [block for m in sent("anthropic", *conversation)["messages"] for block in m["content"]]
    used = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert sorted(used) == sorted(block["tool_use_id"] for block in blocks if block["type"] == "tool_result")


def test_joined_texts_keep_their_order() -> None:
    assert chat(Message("user", "one"), Message("user", 'tw"o')) == [{"role": "user", "content": 'one\n\ntw"o'}]
    texts = [Message("assistant", "a"), Message("assistant", "b"), Message("assistant", "", (ToolCall("c", "ls"),))]
    joined, result = chat(*texts, Message("tool", "r", call_id="c"))
    assert joined["content"] == "a\n\nb" and joined["tool_calls"][0]["id"] == result["tool_call_id"] == "c"


@pytest.mark.slow
def test_joining_a_row_costs_no_more_than_its_length() -> None:
    def prepare(size: int) -> Callable[[], object]:
        return partial(join_neighbours, [b'{"role":"user","content":"a text of some length"}'] * size)

    assert_linear(prepare, 4_000)


@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        ({}, {}, None),
        ({"type": "object"}, {}, None),
        ({"properties": {"a": {}}}, {"a": {}}, None),
        ({"type": ["object", "null"], "properties": {"a": {}}, "required": ["a"]}, {"a": {}}, ["a"]),
        (
            {"oneOf": [{"properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
                       {"properties": {"b": {}}, "required": ["b"]}]},
            {"a": {}, "b": {}}, ["b"],
        ),
        ({"anyOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"properties": {"a": {}}}}}, {"a": {}}, None),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"a": {}, "b": {}}, ["a", "b"],
        ),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": "bad"}, {"a": {"type": "string"}}, None),
    ],
)  # fmt: skip
def test_schemas_are_objects_with_properties(schema: dict[str, Any], properties: Any, required: Any) -> None:
    tool = ToolSpec("t", "a tool", schema)
    given = (
        sent("openai", tools=(tool,))["tools"][0]["function"]["parameters"],
        sent("anthropic", tools=(tool,))["tools"][0]["input_schema"],
    )
    for found in given:
        assert (found["type"], found["properties"], found.get("required")) == ("object", properties, required)
        assert not {"oneOf", "anyOf", "allOf"} & found.keys()
    assert Harness("http://127.0.0.1:1").said == []


def conversation(*rounds: str) -> list[Message]:
    """A round for each word, whose calls are `a` or `a,b`; the word `-` is a round without calls."""
    messages: list[Message] = []
    for word in rounds:
        ids = [] if word == "-" else word.split(",")
        messages += (
            Message("user", "go"),
            Message("assistant", "well", tuple(ToolCall(identity, "ls") for identity in ids)),
        )
        messages += (Message("tool", f"of {identity}", call_id=identity) for identity in ids)
    return messages


def ids_of(provider: str, body: bytes) -> tuple[list[str], list[str]]:
    """Ids of calls and of results, in order."""
    calls: list[str] = []
    results: list[str] = []
    for message in json.loads(body)["messages"]:
        if provider == "anthropic":
            blocks = [block for block in message["content"] if isinstance(block, dict)]
            calls += [block["id"] for block in blocks if block["type"] == "tool_use"]
            results += [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        else:
            calls += [call["id"] for call in message.get("tool_calls", ())]
            results += [message["tool_call_id"]] if message["role"] == "tool" else []
    return calls, results


REPEATED = {
    "c c c": "c c_2 c_3",
    "a b c": "a b c",
    "a,b a,b": "a b a_2 b_2",
    "c - c": "c c_2",
    "c_2 c c": "c_2 c c_3",
    "c c c_2": "c c_2 c_2_2",
    "c c_2 c c_2": "c c_2 c_3 c_2_2",
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("rounds", REPEATED)
def test_ids_that_repeat_go_out_different_and_their_results_with_them(provider: str, rounds: str) -> None:
    request = Request("m1", messages=tuple(conversation(*rounds.split())))
    calls, results = ids_of(provider, model_of(provider).encode(request).join())
    assert calls == results == REPEATED[rounds].split()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_long_ids_that_repeat_stay_within_what_servers_take(provider: str) -> None:
    for identity in ("x" * 64, "x" * 40, "x" * 39, "y" * 200, "a b", ""):
        request = Request("m1", messages=tuple(conversation(*[identity or ","] * 3)))
        calls, results = ids_of(provider, model_of(provider).encode(request).join())
        assert calls == results and len(set(calls)) == len(calls) and all(ID.fullmatch(identity) for identity in calls)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("first_repeat", [1, 60, 300])
def test_later_requests_have_the_same_bytes_for_ids_that_repeat(provider: str, first_repeat: int) -> None:
    words = [f"n{number}" if number < first_repeat else "c" for number in range(first_repeat + 40)]
    messages = conversation(*words)
    model, before = model_of(provider), b""
    for end in (first_repeat * 3 - 3, first_repeat * 3 + 3, len(messages) - 60, len(messages) - 3, len(messages)):
        request = Request("m1", messages=tuple(messages[:end]))
        body = model.encode(request).join()
        assert body == model_of(provider).encode(request).join()
        assert body.startswith(before[:-80])
        before = body
    undone = Request(
        "m1", messages=tuple(messages[: first_repeat * 3 + 3])
    )  # a turn is taken back, another one follows
    other = Request("m1", messages=(*undone.messages, *conversation("c", "d")))
    for request in (undone, other):
        assert model.encode(request).join() == model_of(provider).encode(request).join()
