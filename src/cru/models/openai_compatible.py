"""The adapter for OpenAI, OpenRouter, Ollama, LM Studio, llama.cpp, vLLM and every other server of their kind."""

from collections.abc import AsyncGenerator
from functools import cache

import msgspec
from msgspec import Struct

from cru.models import encoding
from cru.models.encoding import ConversationEncoder, LastBytes, LastValue, PictureAdapter, assemble
from cru.models.exchange import NOT_JSON, Exchange, decode_usage, unfinished_error, unreadable_error
from cru.models.failures import ErrorObject, RequestFacts, error_for_object, to_error_object
from cru.models.protocol import RequestBody, Say
from cru.values.messages import (
    CallPart,
    Delta,
    End,
    Message,
    Request,
    Text,
    Thinking,
    Thought,
    ThoughtBlock,
    ToolSpec,
    Usage,
    system_text,
)

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


class OpenAICompatibleModel(PictureAdapter):
    """See protocol.Model. `request.parameters` holds all parameters that are sent; nothing is added from settings here."""

    tools_by_default = True

    def __init__(self, provider: str, name: str, exchange: Exchange, *, say: Say, images: bool | None = None) -> None:
        self._pictures = encoding.PictureSource(provider, name, images, say)
        self.provider, self.name = provider, name
        self._exchange, self._say = exchange, say
        self._messages = ConversationEncoder(encoding.ChatNotation(self._message, self._pictures))
        self._head, self._system, self._tools, self._opening = LastValue(), LastValue(), LastValue(), LastBytes()
        self._announced: set[str] = set()

    def encode(self, request: Request) -> RequestBody:
        """The request's body. "messages" comes last, so that a longer conversation changes nothing before its new messages."""
        self._pictures.load = request.load_image
        has_tools = bool(request.tools)
        model = request.model or self.name
        head = self._head.get(
            (model, request.parameters, has_tools), lambda: self._encode_head(model, request.parameters, has_tools)
        )
        parts = [head]
        if has_tools:
            parts += [b',"tools":', self._tools.get(request.tools, lambda: _encode_tools(request.tools))]
        parts.append(b',"messages":[')
        if request.system:
            parts.append(self._system.get(request.system, lambda: _encode_system(request)))
        return assemble(self._opening.get(b"".join(parts)), self._messages.encode(request.messages), b"]}")

    def stream(self, body: RequestBody) -> AsyncGenerator[Delta, None]:
        facts = self._exchange.facts
        return self._exchange.deltas(body, lambda: OpenAIReply(facts))

    async def close(self) -> None:
        """Nothing to do: the connections belong to the transport."""

    def _encode_head(self, model: str, parameters: dict[str, object], has_tools: bool) -> bytes:
        head: dict[str, object] = {"model": model, "stream": True}
        if self.provider == "openrouter":
            head["usage"] = {"include": True}
            if model.startswith("anthropic/") and parameters.get("prompt_caching", True):
                head["cache_control"] = {"type": "ephemeral"}
        else:
            head["stream_options"] = {"include_usage": True}
        mapped = encoding.openai_parameters(parameters, self.provider, has_tools)
        for name in mapped.dropped:
            tell_dropped(self._announced, self._say, self.provider, name)
        return _encode(head | mapped.fields)[:-1]

    def _message(self, message: Message) -> bytes:
        if message.images:
            return self._pictures.writer().chat_message(message)
        if message.role == "tool":
            return _encode({"role": "tool", "tool_call_id": message.call_id, "content": message.content})
        if message.role == "user":
            return _encode({"role": "user", "content": message.content})
        if not message.content and not message.calls:
            return b""
        encoded: dict[str, object] = {"role": "assistant", "content": message.content or None}
        for thinking in message.thinking:
            if thinking.provider == self.provider:
                for key, value in thinking.data.items():
                    encoded[key] = encoded[key] + value if key in encoded else value
        if message.calls:
            encoded["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments or "{}"},
                }
                for call in message.calls
            ]
        return _encode(encoded)


def tell_dropped(announced: set[str], say: Say, provider: str, name: str) -> None:
    if name not in announced:
        announced.add(name)
        say(f"{provider} does not take the parameter `{name}`; it is left out")


def _encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    return _encode(
        [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in tools
        ]
    )


def _encode_system(request: Request) -> bytes:
    text = system_text(request.system)
    return _encode({"role": "system", "content": text}) if text else b""


class _FunctionDelta(Struct):
    name: str | None = None
    arguments: str | dict[str, object] | None = None


class _CallDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta | None = None


class _ContentPart(Struct):
    text: str | None = None


class _Part(Struct):
    content: str | list[_ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, object]] | None = None
    tool_calls: list[_CallDelta] | None = None
    refusal: str | None = None


class _ReplyChoice(Struct):
    delta: _Part | None = None
    message: _Part | None = None
    finish_reason: str | None = None
    index: int = 0


class _Details(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OpenAIUsage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    cost: float | None = None


class _Chunk(Struct):
    choices: list[_ReplyChoice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: ErrorObject | str | None = None


@cache
def _chunk_decoder() -> msgspec.json.Decoder[_Chunk]:
    """Made for the first reply: it takes long for a start."""
    return msgspec.json.Decoder(_Chunk)


def _decode(data: bytes | str) -> _Chunk:
    return _chunk_decoder().decode(data)


_CALL_REASONS = ("stop", "function_call", "tool_calls")


class OpenAIReply:
    """One reply. See exchange.ReplyReader."""

    def __init__(self, facts: RequestFacts) -> None:
        self._facts = facts
        self._reason = ""
        self._refused = False
        self._usage = Usage()
        self._calls = _Calls()
        self._thinking = _ThinkingParts()
        self.done = False

    def read(self, data: bytes) -> list[Delta]:
        """The deltas of one event. Raises the ModelError that an `error` object stands for, BrokenReply for anything else."""
        if data == b"[DONE]":
            self.done = True
            return []
        try:
            chunk = _decode(data)
        except NOT_JSON as error:
            if b"\n" in data:  # a server that forgets the blank line between events
                return [delta for line in data.split(b"\n") if line for delta in self.read(line)]
            chunk = self._decode_halved_characters(data, error)
        if chunk.error is not None and (failure := to_error_object(chunk.error)):
            raise error_for_object(self._facts, failure)
        if chunk.usage and (usage := decode_usage(chunk.usage, _OpenAIUsage)):
            self._usage = _to_usage(usage)
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._choice(choice, deltas)
        return deltas

    def whole(self, body: bytes) -> list[Delta]:
        """The deltas of a reply that was not streamed."""
        deltas = self.read(body)
        if not deltas and not self._reason:
            raise unreadable_error(self._facts, body)
        self.done = True
        return deltas

    def end(self) -> list[Delta]:
        """The last deltas: kept reasoning and the End. Raises BrokenReply if the server never said that it had finished."""
        if not self.done and not self._reason:
            raise unfinished_error(self._facts)
        reason = self._reason or "stop"
        if self._refused and reason == "stop":
            reason = "refusal"
        if self._calls.count and reason in _CALL_REASONS:
            reason = "tool_calls"
        return [*self._thinking.block(self._facts.provider), End(reason, self._usage)]

    def _decode_halved_characters(self, data: bytes, error: Exception) -> _Chunk:
        """Some servers cut a character in two, `\\ud83d` here and `\\ude00` in the next event; the halves become U+FFFD."""
        import json

        try:
            text = json.dumps(json.loads(data.decode("utf-8", "replace")), ensure_ascii=False)
            return _decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        except (ValueError, *NOT_JSON):
            raise unreadable_error(self._facts, data) from error

    def _choice(self, choice: _ReplyChoice, deltas: list[Delta]) -> None:
        if choice.finish_reason:
            self._reason = choice.finish_reason
            if self._reason == "error":
                raise error_for_object(self._facts, ErrorObject("the provider stopped with an error"))
        part = choice.message or choice.delta
        if part is None:
            return
        if part.reasoning_details or part.reasoning_content or part.reasoning:
            self._thinking.add(part, deltas)
        self._refused = self._refused or bool(part.refusal)
        if content := part.content or part.refusal:
            text = content if isinstance(content, str) else "".join(piece.text or "" for piece in content)
            if text:
                deltas.append(Text(text))
        for call in part.tool_calls or ():
            deltas.append(self._calls.part(call))


class _Calls:
    """Tells the tool calls of one reply apart. Servers differ: a right index, index 0 for every call, or no index at all."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._ids: list[str] = []
        self._named: set[int] = set()

    @property
    def count(self) -> int:
        return len(self._ids)

    def part(self, call: _CallDelta) -> CallPart:
        function = call.function or _FunctionDelta()
        arguments = function.arguments or ""
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        wire = -1 if call.index is None else call.index
        slot = self._slots.get(wire)
        if slot is None or (function.name and self._is_other(slot, call)):
            slot = self._slots[wire] = len(self._ids)
            self._ids.append(call.id or _new_call_id())
            identity = self._ids[slot]
        else:
            identity = ""
        name = "" if slot in self._named else function.name or ""
        if name:
            self._named.add(slot)
        return CallPart(slot, identity, name, arguments)

    def _is_other(self, slot: int, call: _CallDelta) -> bool:
        """Whether a fragment with a name begins another call although its index is taken."""
        if call.id:
            return call.id != self._ids[slot]
        return call.index is None and slot in self._named


def _new_call_id() -> str:
    from os import urandom

    return f"call_{urandom(8).hex()}"


class _Growing:
    """A field of a reasoning block that comes in pieces."""

    def __init__(self, piece: str) -> None:
        self.pieces = [piece]


class _ThinkingParts:
    """Gathers reasoning so that it can be sent back as the provider wants it."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._field = ""
        self._details: list[dict[str, object]] = []

    def add(self, part: _Part, deltas: list[Delta]) -> None:
        text = part.reasoning_content or part.reasoning or ""
        for detail in part.reasoning_details or ():
            self._detail(detail)
            if not part.reasoning and not part.reasoning_content:
                text += str(detail.get("text") or detail.get("summary") or "")
        if part.reasoning_content:
            self._field = "reasoning_content"
        if text:
            self._text.append(text)
            deltas.append(Thought(text))

    def _detail(self, detail: dict[str, object]) -> None:
        """Fragments of one block have one type and index; their texts are joined, other fields are taken over."""
        last = self._details[-1] if self._details else None
        if last is None or any(last.get(key) != detail.get(key) for key in ("type", "index")):
            last = {}
            self._details.append(last)
        for key, value in detail.items():
            before = last.get(key)
            if isinstance(value, str) and key in _PIECEWISE:
                if isinstance(before, _Growing):
                    before.pieces.append(value)
                else:
                    last[key] = _Growing(value)
            elif value is not None or key not in last:
                last[key] = value

    def block(self, provider: str) -> list[Delta]:
        if not self._text and not self._details:
            return []
        text = "".join(self._text)
        data: dict[str, object] = {}
        if self._details:
            data = {"reasoning_details": [_joined(detail) for detail in self._details]}
        elif self._field:
            data = {self._field: text}
        return [ThoughtBlock(Thinking(provider, text, data))]


_PIECEWISE = ("text", "summary", "data")


def _joined(detail: dict[str, object]) -> dict[str, object]:
    return {key: "".join(value.pieces) if isinstance(value, _Growing) else value for key, value in detail.items()}


def _to_usage(usage: _OpenAIUsage) -> Usage:
    details = usage.prompt_tokens_details or _Details()
    return Usage(
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cache_read=details.cached_tokens or usage.prompt_cache_hit_tokens or 0,
        cache_write=details.cache_write_tokens or 0,
        cost=usage.cost,
    )
