"""Reads the replies of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from cru.models.exchange import NOT_JSON, unfinished, unreadable
from cru.models.failures import ErrorObject, RequestFacts, as_object, from_object
from cru.models.limits import ArgumentBuffer
from cru.values.deltas import CallPart, Delta, End, Text, Thought, ThoughtBlock
from cru.values.messages import Thinking, Usage


class _AnthropicUsage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _ContentBlock(Struct, omit_defaults=True):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: dict[str, Any] = {}


class _Delta(Struct):
    type: str = ""
    text: str = ""
    partial_json: str = ""
    thinking: str = ""
    signature: str = ""
    stop_reason: str | None = None


class _MessageFields(Struct):
    content: list[_ContentBlock] = []
    stop_reason: str | None = None
    usage: _AnthropicUsage | None = None


class _StreamEvent(_MessageFields, kw_only=True):
    type: str = ""
    index: int = 0
    message: _MessageFields | None = None
    content_block: _ContentBlock | None = None
    delta: _Delta | None = None
    error: ErrorObject | str | None = None


_decode = msgspec.json.Decoder(_StreamEvent).decode

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicReply:
    """One reply. See exchange.Reader."""

    def __init__(self, asked: RequestFacts) -> None:
        self._asked = asked
        self._reason = ""
        self._counts = _AnthropicUsage()
        self._blocks: dict[int, _ContentBlock] = {}
        self._calls: dict[int, int] = {}
        self._arguments = ArgumentBuffer()
        self.done = False

    def read(self, data: bytes) -> list[Delta]:
        """The deltas of one event. Raises the ModelError that an `error` event stands for, BrokenReply for anything else."""
        try:
            event = _decode(data)
        except NOT_JSON as error:
            raise unreadable(self._asked, data) from error
        if event.type == "content_block_delta" and event.delta is not None:
            return self._delta(event.index, event.delta)
        if event.error is not None and (failure := as_object(event.error)):
            raise from_object(self._asked, failure)
        return self._other(event)

    def whole(self, body: bytes) -> list[Delta]:
        """The deltas of a reply that was not streamed."""
        deltas = self.read(body)
        if not self._reason:
            raise unreadable(self._asked, body)
        self.done = True
        return deltas

    def end(self) -> list[Delta]:
        """The End. Raises BrokenReply if the server never said that it had finished."""
        if not self.done and not self._reason:
            raise unfinished(self._asked)
        counts = self._counts
        read, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
        usage = Usage((counts.input_tokens or 0) + read + written, counts.output_tokens or 0, read, written)
        return [End(_REASONS.get(self._reason, self._reason or "stop"), usage)]

    def _other(self, event: _StreamEvent) -> list[Delta]:
        match event.type:
            case "message_start" if event.message is not None:
                self._count(event.message.usage)
            case "content_block_start" if event.content_block is not None:
                return self._start(event.index, event.content_block)
            case "content_block_stop":
                return self._stop(event.index)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._reason = event.delta.stop_reason
            case "message_stop":
                self.done = True
            case "message":
                return self._message(event)
        return []

    def _message(self, event: _StreamEvent) -> list[Delta]:
        self._count(event.usage)
        self._reason = event.stop_reason or "end_turn"
        deltas: list[Delta] = []
        for index, block in enumerate(event.content):
            deltas += self._start(index, block)
            deltas += self._stop(index)
        return deltas

    def _start(self, index: int, block: _ContentBlock) -> list[Delta]:
        self._blocks[index] = block
        if block.type == "tool_use":
            slot = self._calls.setdefault(index, len(self._calls))
            given = msgspec.json.encode(block.input).decode() if block.input else ""
            return [CallPart(slot, block.id, block.name, given)]
        if block.type == "text" and block.text:
            return [Text(block.text)]
        if block.type == "thinking" and block.thinking:
            return [Thought(block.thinking)]
        return []

    def _delta(self, index: int, delta: _Delta) -> list[Delta]:
        if delta.type == "text_delta":
            return [Text(delta.text)] if delta.text else []
        if delta.type == "input_json_delta":
            return self._part(index, delta.partial_json)
        block = self._blocks.get(index)
        if block is not None and block.type == "thinking":
            block.thinking += delta.thinking
            block.signature += delta.signature
        return [Thought(delta.thinking)] if delta.thinking else []

    def _part(self, index: int, arguments: str) -> list[Delta]:
        slot = self._calls.get(index)
        if slot is None or not arguments:
            return []
        self._arguments.add(slot, arguments)
        return [CallPart(slot, arguments=arguments)]

    def _stop(self, index: int) -> list[Delta]:
        """A whole reasoning block is kept as it came: it must be sent back with its signature."""
        block = self._blocks.pop(index, None)
        if block is None or block.type not in ("thinking", "redacted_thinking"):
            return []
        if block.type == "thinking":
            data = {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
        else:
            data = {"type": "redacted_thinking", "data": block.data}
        return [ThoughtBlock(Thinking(self._asked.provider, block.thinking, data))]

    def _count(self, usage: _AnthropicUsage | None) -> None:
        """Later counts are totals: they replace earlier ones, a missing one keeps what was known."""
        if usage is None:
            return
        for name in usage.__struct_fields__:
            if (value := getattr(usage, name)) is not None:
                setattr(self._counts, name, value)
