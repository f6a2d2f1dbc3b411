"""What prompt caches live from: a longer conversation has the bytes of the shorter one up to its first new message."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.models import bodies
from tests.core.models.harness import LS, Harness

from cru.core.base.values.messages import Message, Request, Span, Thinking, ToolCall
from cru.core.models import encoding
from cru.core.models.embedded import EmbeddedModel
from cru.core.models.encoding import BLOCK_BYTES, ConversationEncoder, PlainNotation
from cru.core.models.protocol import Model, RequestBody
from cru.core.models.scripted import ScriptedModel
from cru.core.turn.recorder import BodyHash

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


def any_model(provider: str, folder: Path) -> Model:
    if provider == "scripted":
        path = folder / "script.txt"
        path.write_text("text: hi\n")
        return ScriptedModel(path)
    if provider == "local":
        return EmbeddedModel("m1", Path("/nonexistent.gguf"), None, say=lambda text: None)
    return model_of(provider)


def request_for(messages: tuple[Message, ...]) -> Request:
    return Request("m1", SYSTEM, messages, (LS,), {"temperature": 0.5})


@pytest.mark.slow
@pytest.mark.parametrize("provider", bodies.PROVIDERS)
def test_a_session_has_the_bytes_that_it_always_had(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hashes of whole bodies, so that no cache of a provider is lost by accident."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cru.core.models.embedded._require_library", lambda: None)
    model, digests = any_model(provider, Path()), BodyHash()
    expected = json.loads(bodies.HASHES.read_text())[provider]
    for number, request in enumerate(bodies.session(provider)):
        body = model.encode(request)
        digest = hashlib.sha256(body.join()).hexdigest()
        assert digest[:16] == expected[number], f"request {number}"
        assert digests.hexdigest(body.parts) == digest
        assert body.size == len(body.join())
    assert number == len(expected) - 1 > 70


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=60, deadline=None)
@given(messages=conversations, keep=st.integers(1, 9))
def test_a_longer_conversation_keeps_all_bytes_before_its_first_new_message(
    provider: str, messages: tuple[Message, ...], keep: int
) -> None:
    model = model_of(provider)
    short, long = model.encode(request_for(messages[:keep])).join(), model.encode(request_for(messages)).join()
    assert long == model_of(provider).encode(request_for(messages)).join(), "not deterministic"
    assert long.startswith(short.rstrip(b'"]}'))  # a message of the same role continues the last one's text
    msgspec.json.decode(long)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=60, deadline=None)
@given(rounds=st.lists(st.tuples(conversations, st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6))
def test_whatever_was_encoded_before_a_request_has_the_bytes_of_a_fresh_model(
    provider: str, rounds: list[tuple[tuple[Message, ...], int, int]]
) -> None:
    """Messages are taken out of any place and others follow, with blocks of a few bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "BLOCK_BYTES", 40)
        model, digests = model_of(provider), BodyHash()
        messages: tuple[Message, ...] = ()
        for added, start, end in rounds:
            messages = (*messages[:start], *messages[start + end :], *added)
            for _ in range(2):
                body = model.encode(request_for(messages))
                assert body.join() == model_of(provider).encode(request_for(messages)).join()
                assert digests.hexdigest(body.parts) == hashlib.sha256(body.join()).hexdigest()


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
    short = model.encode(request_for(first)).join()
    long = model.encode(request_for((*first, Message("assistant", "a")))).join()
    assert long.startswith(short[: short.index(b'"hi"}') + 5])


class Counting(PlainNotation):
    """Counts what is encoded, and the bytes that are joined."""

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self.joined = 0
        super().__init__(self._encode)

    def _encode(self, message: Message) -> bytes:
        self.encoded.append(message.content)
        return message.content.encode()

    def join(self, messages: Sequence[Message], fragments: Sequence[bytes]) -> bytes:
        joined = super().join(messages, fragments)
        self.joined += len(joined)
        return joined


def test_a_message_is_encoded_once_and_forgotten_when_it_is_gone() -> None:
    notation = Counting()
    encoder = ConversationEncoder(notation)
    old = [Message("user", str(i)) for i in range(500)]
    for end in (100, 300, 500):
        assert b",".join(encoder.encode(old[:end])) == ",".join(map(str, range(end))).encode()
    assert len(notation.encoded) == 500
    for new in ("a", "b"):
        assert encoder.encode([Message("user", new)]) == [new.encode()]
    encoder.encode(old[:1])
    assert len(notation.encoded) == 503, "messages that left were kept"


def test_a_request_beside_the_conversation_costs_it_nothing() -> None:
    notation = Counting()
    encoder = ConversationEncoder(notation)
    messages = [Message("user", f"{i}" * 5000) for i in range(100)]
    for _ in range(3):
        encoder.encode(messages)
        encoder.encode([Message("user", "a title")])
    assert len(notation.encoded) == 103


def test_a_handler_that_rewrites_one_message_every_time_does_not_have_the_others_encoded_again() -> None:
    notation = Counting()
    encoder = ConversationEncoder(notation)
    messages = [Message("user", f"{i} " * 5000) for i in range(100)]
    for _ in range(3):
        encoder.encode(messages)
    before = len(notation.encoded)
    for _ in range(5):
        encoder.encode([*messages[:10], Message("user", "cut"), *messages[11:]])
    assert len(notation.encoded) <= before + 100 + 5


def rounds_of(encode: Callable[[Request], RequestBody], messages: int = 400, size: int = 10_000) -> int:
    """Requests of a conversation of 4 MB that gains a message each time: the most bytes that one needs, beside those kept."""
    conversation = [Message("assistant" if i % 2 else "user", "x" * size) for i in range(messages)]
    digests, most = BodyHash(), 0
    for number in range(12):
        conversation.append(Message("user", f"short {number}"))
        conversation.append(Message("assistant", f"answer {number}"))
        tracemalloc.start()
        digests.hexdigest(encode(request_for(tuple(conversation))).parts)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if number > 2:
            most = max(most, peak)
    return most


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_next_request_of_a_long_conversation_copies_only_what_is_new(provider: str) -> None:
    assert rounds_of(model_of(provider).encode) < 2 * BLOCK_BYTES


def test_the_bytes_that_are_joined_for_each_request_do_not_grow_with_the_conversation() -> None:
    notation = Counting()
    encoder = ConversationEncoder(notation)
    messages = [Message("user", "x" * 1000) for _ in range(4000)]
    for _ in range(2):
        encoder.encode(messages)
    notation.joined = 0
    for number in range(100):
        messages.append(Message("user", f"{number} " * 500))
        encoder.encode(messages)
    assert len(notation.encoded) == 4100
    assert notation.joined < 100 * 1.5 * BLOCK_BYTES


def test_only_new_parts_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    class Hash:
        def __init__(self, data: bytes = b"") -> None:
            self.data = data

        def copy(self) -> Hash:
            return Hash(self.data)

        def update(self, data: bytes) -> None:
            hashed.append(len(data))
            self.data += data

        def hexdigest(self) -> str:
            return self.data.decode()

    monkeypatch.setattr("cru.core.turn.recorder.sha256", Hash)
    digests, old = BodyHash(), [b"a" * 1000, b"b" * 1000]
    assert digests.hexdigest([*old, b"x"]) == "a" * 1000 + "b" * 1000 + "x"
    assert digests.hexdigest([*old, b"y", b"z"]) == "a" * 1000 + "b" * 1000 + "yz"
    assert digests.hexdigest(old[:1]) == "a" * 1000
    assert digests.hexdigest([b"c", old[1]]) == "c" + "b" * 1000
    assert hashed == [1000, 1000, 1, 1, 1, 1, 1000]
