"""Servers whose chat templates refuse ids of calls and orders of roles get the conversation again, in the form that they name.

The server here enforces what Mistral's templates and mistral-common check; test_llama_server.py plays a template to a real server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.core.models.harness import Harness, text_of
from tests.core.models.test_litellm import turn
from tests.kit import Received, Reply, Server, Status, server
from tests.kit.steps import Step

from cru.core.base.values.messages import Image, Message, Request, ToolCall
from cru.core.models.protocol import ModelRefused

ALTERNATE = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
EXCEPT_TOOLS = "conversation roles must alternate user and assistant roles except for tool calls and results."
NINE = "Tool call IDs should be alphanumeric strings with length 9!"
AT_LEAST_NINE = "Tool call IDs should be alphanumeric strings with length >= 9! (1)c1"
OF_NINE = "Tool call id was c1 but must be a-z, A-Z, 0-9, with a length of 9."
AFTER_TOOL = "Unexpected role 'user' after role 'tool'"
Messages = list[dict[str, Any]]
Check = Callable[[Messages], bool]


def alternates(messages: Messages) -> bool:
    roles = [message["role"] for message in messages if message["role"] != "tool" and not message.get("tool_calls")]
    return all(role == ("user", "assistant")[at % 2] for at, role in enumerate(roles))


def has_short_ids(messages: Messages) -> bool:
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert sorted(ids) == sorted(results), "every call has its result"
    return all(re.fullmatch("[a-zA-Z0-9]{9}", identity) for identity in ids + results)


def follows_no_tool(messages: Messages) -> bool:
    return not any((first["role"], second["role"]) == ("tool", "user") for first, second in pairwise(messages))


def strict(*checks: tuple[Check, str], code: int = 400) -> Callable[[Received], Step]:
    def answer(request: Received) -> Step:
        messages = request.body["messages"]
        refusals = [words for check, words in checks if not check(messages)]
        return Status(code, body=f"Jinja Exception: {refusals[0]}") if refusals else Reply("ok")

    return answer


def ask(model: Server, *messages: Message, harness: Harness | None = None) -> tuple[str, list[str], Messages]:
    """The reply, what the user was told, and the messages of the last request."""
    harness = harness or Harness(model.url)
    text = text_of(asyncio.run(harness.ask(Request("m1", messages=messages, load_image=lambda _: b"GIF89a"))))
    return text, harness.said, model.requests[-1].body["messages"]


def long_talk() -> list[Message]:
    first = turn(ToolCall("call_1", "ls", "{}"), ToolCall("toolu_01A", "ls", "{}"), results=("call_1", "toolu_01A"))
    second = turn(ToolCall("functions.ls:0", "ls", "{}"), results=("functions.ls:0",))
    return [*first, Message("user", "and?"), Message("assistant", "so"), *second, Message("user", "well?")]


IMAGE = Message("tool", "found", call_id="c1", images=(Image("d", "image/gif", "a.gif"),))
CALL = turn(ToolCall("c1", "ls", "{}"), results=("c1",))
NINE_CALL = turn(ToolCall("abcDEF123", "ls", "{}"), results=("abcDEF123",))


@pytest.mark.parametrize("code", [400, 422, 500])
@pytest.mark.parametrize(
    ("messages", "checks", "requests"),
    [
        pytest.param(CALL, [(has_short_ids, NINE)], 2, id="an id of another model"),
        pytest.param(CALL, [(has_short_ids, AT_LEAST_NINE)], 2, id="ids of newer templates"),
        pytest.param(CALL, [(has_short_ids, OF_NINE)], 2, id="ids of Mistral's own server"),
        pytest.param(NINE_CALL, [(has_short_ids, NINE)], 1, id="an id that is right"),
        pytest.param([*NINE_CALL, Message("user", "b")], [(alternates, ALTERNATE)], 2, id="a prompt behind a result"),
        pytest.param([*NINE_CALL, Message("user", "b")], [(alternates, EXCEPT_TOOLS)], 2, id="in newer words"),
        pytest.param([*NINE_CALL, Message("user", "b")], [(follows_no_tool, AFTER_TOOL)], 2, id="in mistral-common's"),
        pytest.param([*CALL[:2], IMAGE], [(alternates, ALTERNATE), (has_short_ids, NINE)], 3, id="an image of a tool"),
        pytest.param([Message("assistant", "a"), Message("user", "b")], [(alternates, ALTERNATE)], 2, id="no first prompt"),
        pytest.param(long_talk(), [(alternates, ALTERNATE), (has_short_ids, NINE)], 3, id="roles, then ids"),
        pytest.param(long_talk(), [(has_short_ids, NINE), (alternates, ALTERNATE)], 3, id="ids, then roles"),
    ],
)  # fmt: skip
def test_a_refused_form_is_mended_and_sent_again(
    messages: list[Message], checks: list[tuple[Check, str]], requests: int, code: int
) -> None:
    with server(strict(*checks, code=code)) as model:
        text, said, _ = ask(model, *messages)
        assert text == "ok" and len(model.requests) == requests
        assert len(said) == requests - 1 and all("sent again" in line for line in said)


def test_texts_arguments_and_parameters_stay_and_ids_differ() -> None:
    messages = long_talk()
    with server(strict((alternates, ALTERNATE), (has_short_ids, NINE))) as model:
        _, _, sent = ask(model, *messages)
        first, last = model.requests[0].body, model.requests[-1].body
    assert {key: value for key, value in first.items() if key != "messages"} == {
        key: value for key, value in last.items() if key != "messages"
    }
    kept = [message["content"] for message in sent if message["content"] != "[no answer]"]
    assert kept == [message["content"] for message in first["messages"]]
    ids = [call["id"] for message in sent for call in message.get("tool_calls") or ()]
    assert len(set(ids)) == 3


def test_later_requests_of_a_session_go_out_in_that_form_at_once_and_begin_alike() -> None:
    messages = long_talk()
    with server(strict((alternates, ALTERNATE), (has_short_ids, NINE))) as model:
        harness = Harness(model.url)
        ask(model, *messages, harness=harness)
        _, said, sent = ask(model, *messages, Message("assistant", "c"), Message("user", "d"), harness=harness)
        before = model.requests[-2].body["messages"]
        assert len(model.requests) == 4 and len(said) == 2
        assert sent[: len(before)] == before


@pytest.mark.parametrize(
    ("messages", "words", "requests"),
    [
        (
            CALL,
            "conversation roles must alternate user/assistant",
            1,
        ),  # a template that knows no tools: nothing to mend
        ([*NINE_CALL, Message("user", "b")], ALTERNATE, 2),
        (CALL, NINE, 2),
        (CALL, "Jinja Exception: undefined variable", 1),
        (CALL, "unknown parameter", 1),
    ],
)
def test_what_no_form_helps_against_is_refused_after_one_try_for_each_rule(
    messages: list[Message], words: str, requests: int
) -> None:
    with server(lambda _: Status(400, body=words)) as model:
        with pytest.raises(ModelRefused, match=re.escape(words)):
            ask(model, *messages)
        assert len(model.requests) == requests


def test_a_server_that_takes_everything_gets_ids_and_roles_as_they_are() -> None:
    with server(lambda _: Reply("ok")) as model:
        _, said, sent = ask(model, *long_talk())
        assert said == [] and "call_1" in json.dumps(sent) and len(sent) == len(long_talk())
