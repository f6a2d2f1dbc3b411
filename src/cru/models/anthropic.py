"""The adapter for Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec

from cru.models import parameters
from cru.models.anthropic_reply import AnthropicReply
from cru.models.exchange import Exchange, Say
from cru.models.fragments import FragmentCache, Last
from cru.models.openai_compatible import tell_once
from cru.values.deltas import Delta
from cru.values.messages import Message, Request, ToolSpec, system_text

VERSION = "2023-06-01"
_MARK = {"type": "ephemeral"}
_encode = msgspec.json.encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def endpoint(base_url: str) -> str:
    """The URL to post to: a host, `…/v1` and the full `…/messages` are all understood."""
    base, mark, query = base_url.partition("?")
    base = base.rstrip("/")
    if not base.endswith("/messages"):
        base += "/messages" if base.endswith("/v1") else "/v1/messages"
    return base + mark + query


class Anthropic:
    """See protocol.Model. `request.parameters` holds all parameters that are sent; nothing is added from settings here.

    Caching: a marker on the system prompt (it covers the tools too) and the API's automatic marker at the top level, which
    follows the last message, so the bytes of earlier messages never change."""

    tools_by_default = True

    def __init__(self, name: str, exchange: Exchange, *, say: Say) -> None:
        self.provider, self.name = "anthropic", name
        self._exchange, self._say = exchange, say
        self._messages = FragmentCache(self._blocks)
        self._head, self._system, self._tools = Last(), Last(), Last()
        self._told: set[str] = set()

    def encode(self, request: Request) -> bytes:
        """The request's body; "messages" comes last."""
        model, has_tools = request.model or self.name, bool(request.tools)
        cached = bool(request.parameters.get("prompt_caching", True))
        head = self._head.get(
            (model, request.parameters, has_tools),
            lambda: self._encode_head(model, request.parameters, has_tools, cached),
        )
        parts = [head]
        if has_tools:
            parts += [b',"tools":', self._tools.get(request.tools, lambda: _tools(request.tools))]
        if system := self._system.get((request.system, cached), lambda: _system(request, cached)):
            parts += [b',"system":', system]
        parts += [b',"messages":[', *_turns(request.messages, self._messages.all(request.messages)), b"]}"]
        return b"".join(parts)

    def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        asked = self._exchange.asked
        return self._exchange.deltas(body, lambda: AnthropicReply(asked))

    async def close(self) -> None:
        """Nothing to do: the connections belong to the transport."""

    def _encode_head(self, model: str, given: dict[str, Any], has_tools: bool, cached: bool) -> bytes:
        head: dict[str, Any] = {"model": model, "stream": True}
        if cached:
            head["cache_control"] = _MARK
        mapped = parameters.anthropic(given, model, has_tools)
        for name in mapped.dropped:
            tell_once(self._told, self._say, self.provider, name)
        return _encode(head | mapped.fields)[:-1]

    def _blocks(self, message: Message) -> bytes:
        """A message's content blocks without the brackets; b"" if nothing is left to send."""
        blocks: list[dict[str, Any]] = []
        if message.role == "tool":
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(message.call_id)}
            if message.content:
                result["content"] = message.content
            if message.is_error:
                result["is_error"] = True
            blocks.append(result)
            return _encode(blocks)[1:-1]
        if message.content.strip():
            blocks.append({"type": "text", "text": message.content})
        for call in message.calls:
            blocks.append({"type": "tool_use", "id": _id(call.id), "name": call.name, "input": _input(call.arguments)})
        if blocks and message.role == "assistant":
            blocks[:0] = [t.data for t in message.thinking if t.provider == self.provider and t.data]
        return _encode(blocks)[1:-1]


def _turns(messages: Sequence[Message], fragments: Sequence[bytes]) -> list[bytes]:
    """The messages as the API wants them: user and assistant alternate, so neighbours of one side become one message; in a
    user message the tool results come first."""
    parts: list[bytes] = []
    side = ""
    results: list[bytes] = []
    texts: list[bytes] = []

    def flush() -> None:
        if results or texts:
            parts.append(b"," if parts else b"")
            parts.append(b'{"role":"%b","content":[' % side.encode())
            parts.append(b",".join(results + texts))
            parts.append(b"]}")
        results.clear()
        texts.clear()

    for message, fragment in zip(messages, fragments, strict=True):
        if not fragment:
            continue
        its_side = "assistant" if message.role == "assistant" else "user"
        if its_side != side:
            flush()
            side = its_side
        (results if message.role == "tool" else texts).append(fragment)
    flush()
    return parts


def _input(arguments: str) -> dict[str, Any]:
    try:
        return _decode_object(arguments or "{}")
    except msgspec.DecodeError:
        return {"_raw": arguments}


def _id(identity: str) -> str:
    """A call's id with the characters that the API takes; ids of other providers may hold others."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in identity) or "call"


def _tools(tools: tuple[ToolSpec, ...]) -> bytes:
    return _encode([{"name": t.name, "description": t.description, "input_schema": t.parameters} for t in tools])


def _system(request: Request, cached: bool) -> bytes:
    text = system_text(request.system)
    if not text.strip():
        return b""
    block: dict[str, Any] = {"type": "text", "text": text}
    return _encode([block | {"cache_control": _MARK} if cached else block])
