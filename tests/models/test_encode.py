"""What prompt caches live from: a longer conversation has the bytes of the shorter one up to its first new message."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.harness import LS, Harness

from cru.models.encoding import FragmentCache
from cru.models.protocol import Model
from cru.models.scripted import ScriptedModel
from cru.values.messages import Message, Request, Span, Thinking, ToolCall

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
calls = st.builds(
    ToolCall,
    id=st.sampled_from(["a", "b|c"]),
    name=st.just("ls"),
    arguments=st.sampled_from(["{}", '{"path":"x"}', "{bad"]),
)
thinking = st.builds(Thinking, st.sampled_from(["openrouter", "anthropic"]), texts, st.just({"type": "thinking"}))
rounds = st.tuples(
    st.builds(Message, role=st.just("user"), content=texts.filter(str.strip)),
    st.builds(
        Message,
        role=st.just("assistant"),
        content=texts,
        calls=st.lists(calls, max_size=2).map(tuple),
        thinking=st.lists(thinking, max_size=1).map(tuple),
    ),
)
conversations = st.lists(rounds, min_size=1, max_size=5).map(
    lambda pairs: tuple(message for pair in pairs for message in pair)
)

PROVIDERS = ["openrouter", "openai", "openai_compatible", "anthropic"]
SYSTEM = (Span("base", "file", "You are helpful."), Span("date", "clock", "Today."))


def model_of(provider: str) -> Model:
    return Harness("http://127.0.0.1:1", provider).model


def request_for(messages: tuple[Message, ...]) -> Request:
    return Request("m1", SYSTEM, messages, (LS,), {"temperature": 0.5})


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=60, deadline=None)
@given(messages=conversations, keep=st.integers(1, 9))
def test_a_longer_conversation_keeps_all_bytes_before_its_first_new_message(
    provider: str, messages: tuple[Message, ...], keep: int
) -> None:
    model = model_of(provider)
    short, long = model.encode(request_for(messages[:keep])), model.encode(request_for(messages))
    assert long == model_of(provider).encode(request_for(messages)), "not deterministic"
    assert long.startswith(short.rstrip(b"]}"))
    msgspec.json.decode(long)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_equal_requests_of_other_objects_give_equal_bytes(provider: str) -> None:
    def fresh() -> Request:
        return request_for((Message("user", "hi"), Message("assistant", "a", (ToolCall("c", "ls", "{}"),))))

    model = model_of(provider)
    assert model.encode(fresh()) == model.encode(fresh()) == model_of(provider).encode(fresh())


def test_the_scripted_model_keeps_its_prefix_too(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text("text: hi\n")
    model = ScriptedModel(path)
    first = (Message("user", "hi"),)
    short, long = model.encode(request_for(first)), model.encode(request_for((*first, Message("assistant", "a"))))
    assert long.startswith(short[: short.index(b'"hi"}') + 5])


def test_a_message_is_encoded_once_and_forgotten_when_it_is_gone() -> None:
    encoded: list[Message] = []

    def encode(message: Message) -> bytes:
        encoded.append(message)
        return message.content.encode()

    cache = FragmentCache(encode)
    old = [Message("user", str(i)) for i in range(500)]
    for end in (100, 300, 500):
        assert cache.encode_all(old[:end]) == [str(i).encode() for i in range(end)]
    assert len(encoded) == 500
    new = [Message("user", "new")]
    assert cache.encode_all(new) == [b"new"]
    cache.encode_all(old[:1])
    assert len(encoded) == 502, "messages that left were kept"


def test_encoding_the_next_of_a_thousand_rounds_costs_little() -> None:
    model = model_of("openai_compatible")
    messages = tuple(Message("user" if i % 2 else "assistant", "x" * 300) for i in range(2000))
    model.encode(request_for(messages))
    best = 1.0
    for i in range(5):
        longer = (*messages, Message("user", str(i)))
        began = time.perf_counter()
        model.encode(request_for(longer))
        best = min(best, time.perf_counter() - began)
    assert best < 0.005
