"""What comes in a thousand pieces is put together once: no piece copies those before it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cru.core.base.values.messages import CallPart, ThoughtBlock
from cru.core.models import anthropic, openai_compatible
from cru.core.models.anthropic import AnthropicReply
from cru.core.models.failures import RequestFacts
from cru.core.models.openai_compatible import OpenAIReply
from cru.core.turn.round import ModelReply, _take

FACTS = RequestFacts("anthropic", "m1")
PIECES = 2000


class Counted(str):
    """Text that counts the characters of what it is added to."""

    copied = 0

    def __add__(self, other: str) -> Counted:
        Counted.copied += len(self) + len(other)
        return Counted(str(self) + str(other))

    def __radd__(self, other: str) -> Counted:
        return Counted(other) + self


@pytest.fixture(autouse=True)
def nothing_is_added() -> Any:
    Counted.copied = 0
    yield
    assert Counted.copied < 3 * PIECES * 10


def test_arguments_of_a_call() -> None:
    reply = ModelReply()
    for _ in range(PIECES):
        _take(reply, CallPart(0, "c", "write", Counted("0123456789")))
    assert reply.calls("x")[0].arguments == "0123456789" * PIECES


def test_thinking_and_its_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(data: bytes) -> Any:
        event = msgspec.json.decode(data, type=anthropic._StreamEvent)
        if event.delta is not None:
            event.delta.thinking, event.delta.signature = Counted(event.delta.thinking), Counted(event.delta.signature)
        return event

    monkeypatch.setattr(anthropic, "_decode", decode)
    reply = AnthropicReply(FACTS)
    reply.read(b'{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}')
    piece = {"type": "thinking_delta", "thinking": "0123456789", "signature": "sig"}
    event = msgspec.json.encode({"type": "content_block_delta", "index": 0, "delta": piece})
    for _ in range(PIECES):
        reply.read(event)
    (block,) = reply.read(b'{"type":"content_block_stop","index":0}')
    assert isinstance(block, ThoughtBlock)
    assert block.block.text == "0123456789" * PIECES
    assert block.block.data["signature"] == "sig" * PIECES


def test_details_of_reasoning(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(data: bytes) -> Any:
        chunk = msgspec.json.decode(data, type=openai_compatible._Chunk)
        for choice in chunk.choices or ():
            for detail in (choice.delta.reasoning_details or ()) if choice.delta else ():
                detail["data"] = Counted(detail["data"])
        return chunk

    monkeypatch.setattr(openai_compatible, "_decode", decode)
    reply = OpenAIReply(FACTS)
    detail = {"type": "reasoning.encrypted", "index": 0, "data": "0123456789", "id": None}
    event = msgspec.json.encode({"choices": [{"delta": {"reasoning_details": [detail]}}]})
    for _ in range(PIECES):
        reply.read(event)
    reply.read(b'{"choices":[{"delta":{},"finish_reason":"stop"}]}')
    block = reply.end()[0]
    assert isinstance(block, ThoughtBlock)
    assert block.block.data == {
        "reasoning_details": [{"type": "reasoning.encrypted", "index": 0, "data": "0123456789" * PIECES, "id": None}]
    }
