"""The OpenAI-compatible adapter in front of a real llama.cpp server, with chat templates that know tools, and with strict ones.
`bench/install_peers.sh llama` gets the server; its model is made by tests/programs/llama_server.py."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.models.harness import KEY, LS, Harness, calls_of, text_of
from tests.core.models.real_servers import LLAMA, WINDOW, llama
from tests.core.models.test_litellm import HISTORIES, turn

from cru.core.base.net.transport import Transport
from cru.core.base.values.messages import Delta, End, Image, Message, Request, Span, Text, ToolCall, ToolSpec
from cru.core.models.listing import KeyRefused, list_models
from cru.core.models.protocol import BrokenReply, ContextTooLong, ModelError, ModelRefused

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LLAMA.exists(), reason="llama.cpp's server is not installed: bench/install_peers.sh llama"),
]
SYSTEM = (Span("base", "file", "You help."),)
HELLO = ("hello", " world")
LA = "la "
ENDLESS = (LA, None)


def conversation(*messages: Message, tools: tuple[ToolSpec, ...] = (LS,), **parameters: Any) -> Request:
    return Request("m1", SYSTEM, messages, tools, {"temperature": 0, "max_tokens": 40, **parameters})


HI = conversation(Message("user", "hi"))


def ask(url: str, request: Request = HI, key: str = KEY) -> list[Delta]:
    return asyncio.run(Harness(url, key=key).ask(request))


def refusal(url: str, request: Request, key: str = KEY) -> tuple[ModelError, list[str]]:
    """The error, and what the user was told before it."""
    harness = Harness(url, key=key)
    with pytest.raises(ModelError) as caught:
        asyncio.run(harness.ask(request))
    return caught.value, harness.said


@pytest.fixture(scope="module")
def chatml() -> Iterator[str]:
    with llama("chatml", HELLO) as (url, _):
        yield url


@pytest.fixture(scope="module")
def alternating() -> Iterator[str]:
    with llama("alternating", HELLO) as (url, _):
        yield url


@pytest.fixture(scope="module")
def mistral() -> Iterator[str]:
    with llama("mistral", HELLO) as (url, _):
        yield url


@pytest.fixture(scope="module")
def endless() -> Iterator[str]:
    with llama("chatml", ENDLESS) as (url, _):
        yield url


@pytest.mark.parametrize("tools", [(), (LS,)])
def test_an_answer_is_streamed_with_its_usage(chatml: str, tools: tuple[ToolSpec, ...]) -> None:
    *texts, last = ask(chatml, replace(HI, tools=tools))
    assert texts == [Text("hello"), Text(" world")]
    assert isinstance(last, End)
    assert (last.reason, last.usage.output) == ("stop", 3) and last.usage.input > 50


BEGIN, END = "<tool_call>", "\n</tool_call>"
DOCS, SRC = ('\n{"name": "ls", "arguments": {"path": "' + name + '"}}' for name in ("docs", "src"))
CALLS: dict[str, tuple[str, list[str], str, list[str]]] = {
    "a call": ("chatml", [BEGIN, DOCS, END], "", ["docs"]),
    "a call in pieces": (
        "chatml",
        ["I look.", BEGIN, '\n{"name": "ls", ', '"arguments": {"path": ', '"docs"}}', END],
        "I look.",
        ["docs"],
    ),
    "parallel calls": ("chatml", [BEGIN, DOCS, f"{END}\n{BEGIN}", SRC, f"{END}\n"], "", ["docs", "src"]),
    "another template": (
        "mistral",
        ["[TOOL_CALLS]", ' [{"name": "ls", "arguments": {"path": "docs"}, "id": "abcdefghi"}]'],
        "",
        ["docs"],
    ),
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_template_that_knows_tools_gives_calls(case: str, choice: str) -> None:
    template, pieces, text, paths = CALLS[case]
    with llama(template, pieces) as (url, _):
        deltas = ask(url, replace(HI, parameters={**HI.parameters, "tool_choice": choice, "parallel_tool_calls": True}))
    calls = calls_of(deltas)
    assert (text_of(deltas), [call.arguments for call in calls]) == (text, [f'{{"path": "{path}"}}' for path in paths])
    assert {call.name for call in calls} == {"ls"} and len({call.id for call in calls}) == len(calls)
    assert isinstance(deltas[-1], End) and deltas[-1].reason == "tool_calls"


@pytest.mark.parametrize("case", HISTORIES)
def test_a_template_that_knows_tools_takes_every_conversation(chatml: str, case: str) -> None:
    assert text_of(ask(chatml, conversation(*HISTORIES[case][0]))) == "hello world"


WITHOUT_CALLS = {case: messages for case, (messages, calls) in HISTORIES.items() if not calls}


@pytest.mark.parametrize("case", WITHOUT_CALLS)
def test_a_template_whose_roles_must_alternate_takes_conversations_without_calls(alternating: str, case: str) -> None:
    assert text_of(ask(alternating, conversation(*WITHOUT_CALLS[case]))) == "hello world"


def test_a_template_without_tools_refuses_their_results_with_the_next_step(alternating: str) -> None:
    messages = turn(ToolCall("c1", "ls", "{}"), results=("c1",))
    error, said = refusal(alternating, conversation(*messages))
    assert type(error) is ModelRefused and not said
    assert "must alternate" in error.message and "chat template" in error.hint


def test_a_template_that_wants_ids_of_nine_characters_takes_them(mistral: str) -> None:
    messages = turn(ToolCall("abcdefghi", "ls", "{}"), results=("abcdefghi",))
    harness = Harness(mistral)
    assert text_of(asyncio.run(harness.ask(conversation(*messages)))) == "hello world"
    assert harness.said == []


@pytest.mark.parametrize("case", HISTORIES)
def test_a_template_that_wants_ids_of_nine_characters_takes_every_conversation(mistral: str, case: str) -> None:
    assert text_of(ask(mistral, conversation(*HISTORIES[case][0]))) == "hello world"


def test_a_template_whose_roles_must_alternate_around_calls_takes_a_prompt_behind_a_result(mistral: str) -> None:
    messages = [*turn(ToolCall("call_1", "ls", "{}"), results=("call_1",)), Message("user", "well?")]
    harness = Harness(mistral)
    assert text_of(asyncio.run(harness.ask(conversation(*messages)))) == "hello world"
    assert len(harness.said) == 2


def test_a_prompt_that_is_larger_than_the_context_is_known(chatml: str) -> None:
    error, said = refusal(chatml, conversation(Message("user", "x" * 3000)))
    assert type(error) is ContextTooLong and not said
    assert str(WINDOW) in error.message


def test_a_reply_that_fills_the_context_ends_there(endless: str) -> None:
    deltas = ask(endless, conversation(Message("user", "x" * 1700), tools=(), max_tokens=WINDOW))
    last = deltas[-1]
    assert isinstance(last, End) and last.reason == "length"
    assert last.usage.input + last.usage.output == WINDOW
    assert text_of(deltas) == LA * last.usage.output


def test_a_cancelled_reply_makes_room_for_the_next_one(endless: str) -> None:
    async def main() -> None:
        harness = Harness(endless)
        stream = harness.model.stream(harness.model.encode(conversation(Message("user", "hi"), max_tokens=-1)))
        assert await anext(stream) == Text(LA)
        await stream.aclose()
        await harness.transport.close()

    asyncio.run(main())
    assert text_of(ask(endless, conversation(Message("user", "hi"), max_tokens=2))) == LA * 2


def test_a_server_that_is_killed_in_the_middle_of_a_reply_is_missed() -> None:
    async def main() -> list[Delta]:
        deltas: list[Delta] = []
        with llama("chatml", ENDLESS) as (url, running):
            harness = Harness(url)
            try:
                async for delta in harness.model.stream(
                    harness.model.encode(replace(HI, parameters={"temperature": 0}))
                ):
                    deltas.append(delta)
                    running.send_signal(signal.SIGKILL)
            finally:
                await harness.transport.close()
        return deltas

    with pytest.raises(BrokenReply) as caught:
        asyncio.run(main())
    assert caught.value.retryable


def test_an_image_is_refused_at_once_with_the_next_step(chatml: str) -> None:
    message = Message("user", "what is it?", images=(Image("d", "image/gif", "a.gif"),))
    request = replace(conversation(message), load_image=lambda _: b"GIF89a\1\0\1\0\0\0\0;")
    error, said = refusal(chatml, request)
    assert type(error) is ModelRefused and not said
    assert "image input is not supported" in error.message and "images = false" in error.hint


def test_a_key_that_the_server_does_not_know_is_named_and_its_list_has_the_window_that_it_serves() -> None:
    async def listed(url: str, key: str) -> list[int | None]:
        transport = Transport()
        try:
            return [model.context_window for model in await list_models(transport, "openai_compatible", url, key)]
        finally:
            await transport.close()

    with llama("chatml", HELLO, keys=[KEY]) as (url, _):
        assert text_of(ask(url)) == "hello world"
        error, said = refusal(url, HI, key="sk-another-key")
        assert type(error) is ModelRefused and "the key came from TEST_API_KEY" in error.hint and not said
        assert asyncio.run(listed(url, KEY)) == [WINDOW]
        with pytest.raises(KeyRefused):
            asyncio.run(listed(f"{url}/", "sk-another-key"))
