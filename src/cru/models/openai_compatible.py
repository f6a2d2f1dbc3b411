"""The adapter for OpenAI, OpenRouter, Ollama, LM Studio, llama.cpp, vLLM and every other server of their kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from cru.models import parameters
from cru.models.exchange import Exchange, Say
from cru.models.fragments import FragmentCache, Last
from cru.models.openai_reply import OpenAIReply
from cru.values.deltas import Delta
from cru.values.messages import Message, Request, ToolSpec, system_text

_encode = msgspec.json.encode


def endpoint(base_url: str) -> str:
    """The URL to post to: `…/v1` and the full `…/chat/completions` are both understood; a bare host gets `/v1`."""
    base, mark, query = base_url.partition("?")
    base = base.rstrip("/")
    if not base.endswith("/chat/completions"):
        if base.count("/") <= 2:
            base += "/v1"
        base += "/chat/completions"
    return base + mark + query


class OpenAICompatible:
    """See protocol.Model. `request.parameters` holds all parameters that are sent; nothing is added from settings here."""

    tools_by_default = True

    def __init__(self, provider: str, name: str, exchange: Exchange, *, say: Say) -> None:
        self.provider, self.name = provider, name
        self._exchange, self._say = exchange, say
        self._messages = FragmentCache(self._message)
        self._head, self._system, self._tools = Last(), Last(), Last()
        self._told: set[str] = set()

    def encode(self, request: Request) -> bytes:
        """The request's body. "messages" comes last, so that a longer conversation changes nothing before its new messages."""
        has_tools = bool(request.tools)
        model = request.model or self.name
        head = self._head.get(
            (model, request.parameters, has_tools), lambda: self._encode_head(model, request.parameters, has_tools)
        )
        parts = [head]
        if has_tools:
            parts += [b',"tools":', self._tools.get(request.tools, lambda: _tools(request.tools))]
        parts.append(b',"messages":[')
        fragments = [fragment for fragment in self._messages.all(request.messages) if fragment]
        if request.system:
            text = self._system.get(request.system, lambda: _system(request))
            if text:
                fragments.insert(0, text)
        parts += [b",".join(fragments), b"]}"]
        return b"".join(parts)

    def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        asked = self._exchange.asked
        return self._exchange.deltas(body, lambda: OpenAIReply(asked))

    async def close(self) -> None:
        """Nothing to do: the connections belong to the transport."""

    def _encode_head(self, model: str, given: dict[str, Any], has_tools: bool) -> bytes:
        head: dict[str, Any] = {"model": model, "stream": True}
        if self.provider == "openrouter":
            head["usage"] = {"include": True}
            if model.startswith("anthropic/") and given.get("prompt_caching", True):
                head["cache_control"] = {"type": "ephemeral"}
        else:
            head["stream_options"] = {"include_usage": True}
        mapped = parameters.openai(given, self.provider, has_tools)
        for name in mapped.dropped:
            tell_once(self._told, self._say, self.provider, name)
        return _encode(head | mapped.fields)[:-1]

    def _message(self, message: Message) -> bytes:
        if message.role == "tool":
            return _encode({"role": "tool", "tool_call_id": message.call_id, "content": message.content})
        if message.role == "user":
            return _encode({"role": "user", "content": message.content})
        if not message.content and not message.calls:
            return b""
        said: dict[str, Any] = {"role": "assistant", "content": message.content or None}
        for thinking in message.thinking:
            if thinking.provider == self.provider:
                for key, value in thinking.data.items():
                    said[key] = said[key] + value if key in said else value
        if message.calls:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments or "{}"},
                }
                for call in message.calls
            ]
        return _encode(said)


def tell_once(told: set[str], say: Say, provider: str, name: str) -> None:
    if name not in told:
        told.add(name)
        say(f"{provider} does not take the parameter `{name}`; it is left out")


def _tools(tools: tuple[ToolSpec, ...]) -> bytes:
    return _encode(
        [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in tools
        ]
    )


def _system(request: Request) -> bytes:
    text = system_text(request.system)
    return _encode({"role": "system", "content": text}) if text else b""
