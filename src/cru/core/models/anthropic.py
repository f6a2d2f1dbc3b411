"""The adapter for Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec
from msgspec import Struct

from cru.core.base.values.messages import (
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
from cru.core.models import encoding
from cru.core.models.anthropic_parameters import anthropic_parameters
from cru.core.models.encoding import (
    ConversationEncoder,
    LastBytes,
    LastValue,
    PictureAdapter,
    PictureSource,
    assemble,
)
from cru.core.models.exchange import NOT_JSON, Exchange, decode_usage, unfinished_error, unreadable_error
from cru.core.models.failures import ErrorObject, RequestFacts, check_reason, error_for_object, to_error_object
from cru.core.models.irregular import decode_irregular, new_call_id, raise_unlabelled_error
from cru.core.models.protocol import NAME_CHARACTERS, RequestBody, Say, tell_dropped

VERSION = "2023-06-01"
_MARK = {"type": "ephemeral"}
_encode = msgspec.json.encode


def endpoint(base_url: str) -> str:
    """The URL to post to: a host, `…/v1` and the full `…/messages` are all understood."""
    base, mark, query = base_url.partition("?")
    base = base.rstrip("/")
    if not base.endswith("/messages"):
        base += "/messages" if base.endswith("/v1") else "/v1/messages"
    return base + mark + query


class AnthropicModel(PictureAdapter):
    """See protocol.Model. `request.parameters` holds all parameters that are sent; nothing is added from settings here.

    Caching: a marker on the system prompt (it covers the tools too) and the API's automatic marker at the top level, which
    follows the last message, so the bytes of earlier messages never change."""

    tools_by_default = True

    def __init__(self, name: str, exchange: Exchange, *, say: Say, images: bool | None = None) -> None:
        self.provider, self.name = exchange.facts.provider, name
        self._pictures = PictureSource(self.provider, name, images, say)
        self._exchange, self._say = exchange, say
        self._messages = ConversationEncoder(_TurnNotation(self._pictures, self.provider))
        self._head, self._system, self._tools, self._opening = LastValue(), LastValue(), LastValue(), LastBytes()
        self._announced: set[str] = set()

    def encode(self, request: Request) -> RequestBody:
        """The request's body; "messages" comes last."""
        self._pictures.load = request.load_image
        model, has_tools = request.model or self.name, bool(request.tools)
        cached = bool(request.parameters.get("prompt_caching", True))
        head = self._head.get(
            (model, request.parameters, has_tools),
            lambda: self._encode_head(model, request.parameters, has_tools, cached),
        )
        parts = [head]
        if has_tools:
            parts += [b',"tools":', self._tools.get(request.tools, lambda: _encode_tools(request.tools))]
        if system := self._system.get((request.system, cached), lambda: _encode_system(request, cached)):
            parts += [b',"system":', system]
        parts.append(b',"messages":[')
        return assemble(self._opening.get(b"".join(parts)), self._messages.encode(request.messages), b"]}")

    def stream(self, body: RequestBody) -> AsyncGenerator[Delta, None]:
        facts = self._exchange.facts
        return self._exchange.deltas(body, lambda: AnthropicReply(facts))

    async def close(self) -> None:
        """Nothing to do: the connections belong to the transport."""

    def _encode_head(self, model: str, parameters: dict[str, object], has_tools: bool, cached: bool) -> bytes:
        head: dict[str, object] = {"model": model, "stream": True}
        if cached:
            head["cache_control"] = _MARK
        mapped = anthropic_parameters(parameters, model, has_tools)
        for name in mapped.dropped:
            tell_dropped(self._announced, self._say, self.provider, name)
        return _encode(head | mapped.fields)[:-1]


class _TurnNotation:
    """The messages as the API wants them: user and assistant alternate, so neighbours of one side become one message; in a
    user message the tool results come first. A message by itself is its content blocks without the brackets."""

    def __init__(self, pictures: PictureSource, provider: str) -> None:
        self._pictures, self._provider = pictures, provider

    def encode(self, message: Message) -> bytes:
        """A message's content blocks without the brackets; b"" if nothing is left to send."""
        blocks: list[dict[str, object]] = []
        if message.role == "tool":
            result: dict[str, object] = {
                "type": "tool_result",
                "tool_use_id": encoding.valid_id(message.call_id, NAME_CHARACTERS),
            }
            if message.images:
                result["content"] = self._pictures.writer().anthropic_blocks(message)
            elif message.content:
                result["content"] = message.content
            if message.is_error:
                result["is_error"] = True
            blocks.append(result)
            return _encode(blocks)[1:-1]
        if message.images:
            return _encode(self._pictures.writer().anthropic_blocks(message))[1:-1]
        if message.content.strip():
            blocks.append({"type": "text", "text": message.content})
        for call in encoding.valid_calls(message.calls, NAME_CHARACTERS) if message.calls else ():
            arguments = encoding.decode_object(call.arguments or "{}")
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
        if blocks and message.role == "assistant":
            blocks[:0] = [t.data for t in message.thinking if t.provider == self._provider and t.data]
        return _encode(blocks)[1:-1]

    def join(self, messages: Sequence[Message], fragments: Sequence[bytes]) -> bytes:
        messages, fragments = encoding.match_results(messages, fragments, self.encode)
        turns: list[bytes] = []
        side = ""
        results: list[bytes] = []
        texts: list[bytes] = []

        def flush() -> None:
            if results or texts:
                turns.append(b'{"role":"%b","content":[%b]}' % (side.encode(), b",".join(results + texts)))
            results.clear()
            texts.clear()

        for message, fragment in zip(messages, fragments, strict=True):
            if not fragment:
                continue
            if _side(message) != side:
                flush()
                side = _side(message)
            (results if message.role == "tool" else texts).append(fragment)
        flush()
        return b",".join(turns)

    def may_part(self, messages: Sequence[Message], fragments: Sequence[bytes], at: int) -> bool:
        before = next((number for number in range(at - 1, -1, -1) if fragments[number]), -1)
        if messages[at].role == "tool" or not fragments[at] or before < 0:
            return False
        return _side(messages[at]) != _side(messages[before]) and not messages[before].calls


def _side(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    return _encode(
        [{"name": t.name, "description": t.description, "input_schema": encoding.tool_schema(t)} for t in tools]
    )


def _encode_system(request: Request, cached: bool) -> bytes:
    text = system_text(request.system)
    if not text.strip():
        return b""
    block: dict[str, object] = {"type": "text", "text": text}
    return _encode([block | {"cache_control": _MARK} if cached else block])


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
    input: dict[str, object] = {}


class _ThinkingPieces(Struct):
    """A reasoning block that has not come whole."""

    thinking: list[str]
    signature: list[str]


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
    usage: msgspec.Raw = msgspec.Raw()


class _StreamEvent(_MessageFields, kw_only=True):
    type: str = ""
    index: int = 0
    message: _MessageFields | None = None
    content_block: _ContentBlock | None = None
    delta: _Delta | None = None
    error: ErrorObject | str | None = None


_decoder = msgspec.json.Decoder(_StreamEvent)
_decode = _decoder.decode

_EVENTS = (
    *("ping", "message_start", "message_delta", "message_stop", "message"),
    *("content_block_start", "content_block_delta", "content_block_stop"),
)
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicReply:
    """One reply. See exchange.ReplyReader."""

    def __init__(self, facts: RequestFacts) -> None:
        self._facts = facts
        self._reason = ""
        self._counts = _AnthropicUsage()
        self._blocks: dict[int, _ContentBlock] = {}
        self._has_blocks = False
        self._calls: dict[int, int] = {}
        self._ids: list[str] = []
        self._inputs: dict[int, str] = {}
        """Of calls of which no piece has come, the input that their block began with."""
        self._thoughts: dict[int, _ThinkingPieces] = {}
        self.done = False

    def read(self, data: bytes) -> list[Delta]:
        """The deltas of one event. Raises the ModelError that an `error` event stands for, BrokenReply for anything else."""
        try:
            event = _decode(data)
        except NOT_JSON as error:
            decoded = decode_irregular(self._facts, _decoder, data, error)
            if decoded is None:
                return []
            event = decoded
        if event.type == "content_block_delta" and event.delta is not None:
            return self._delta(event.index, event.delta)
        if event.error is not None and (failure := to_error_object(event.error)):
            raise error_for_object(self._facts, failure)
        if event.type not in _EVENTS:
            raise_unlabelled_error(self._facts, data, known_kinds=True)
        return self._other(event)

    def whole(self, body: bytes) -> list[Delta]:
        """The deltas of a reply that was not streamed."""
        deltas = self.read(body)
        if not self._reason:
            raise unreadable_error(self._facts, body)
        self.done = True
        return deltas

    def end(self) -> list[Delta]:
        """The End. Raises BrokenReply if the server never said that it had finished."""
        if not self._reason:
            raise unfinished_error(self._facts)
        check_reason(self._facts, self._reason)
        counts = self._counts
        read, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
        usage = Usage((counts.input_tokens or 0) + read + written, counts.output_tokens or 0, read, written)
        calls = [CallPart(slot, arguments=text) for slot, text in self._inputs.items()]
        return [*calls, End(_REASONS.get(self._reason, self._reason), usage)]

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
        if self._has_blocks:  # the message repeats what has come
            return deltas
        for index, block in enumerate(event.content):
            deltas += self._start(index, block)
            deltas += self._stop(index)
        return deltas

    def _start(self, index: int, block: _ContentBlock) -> list[Delta]:
        self._blocks[index], self._has_blocks = block, True
        if block.type == "tool_use":
            return self._call(index, block)
        if block.type == "text" and block.text:
            return [Text(block.text)]
        if block.type == "thinking":
            self._thoughts[index] = _ThinkingPieces([block.thinking], [block.signature])
            return [Thought(block.thinking)] if block.thinking else []
        return []

    def _call(self, index: int, block: _ContentBlock) -> list[Delta]:
        known = self._calls.get(index)
        if block.id and known is not None and self._ids[known] == block.id:
            return []  # the server began the block once more
        identity = block.id
        if not identity or identity in self._ids:
            identity = new_call_id()
        slot = self._calls[index] = len(self._ids)
        self._ids.append(block.id)
        if block.input:
            self._inputs[slot] = _encode(block.input).decode()
        return [CallPart(slot, identity, block.name)]

    def _delta(self, index: int, delta: _Delta) -> list[Delta]:
        if delta.type == "text_delta":
            return [Text(delta.text)] if delta.text else []
        if delta.type == "input_json_delta":
            return self._part(index, delta.partial_json)
        pieces = self._thoughts.get(index)
        if pieces is not None:
            pieces.thinking.append(delta.thinking)
            pieces.signature.append(delta.signature)
        return [Thought(delta.thinking)] if delta.thinking else []

    def _part(self, index: int, arguments: str) -> list[Delta]:
        slot = self._calls.get(index)
        if slot is None or not arguments:
            return []
        self._inputs.pop(slot, None)
        return [CallPart(slot, arguments=arguments)]

    def _stop(self, index: int) -> list[Delta]:
        """A whole reasoning block is kept as it came: it must be sent back with its signature."""
        block = self._blocks.pop(index, None)
        if block is None or block.type not in ("thinking", "redacted_thinking"):
            return []
        if block.type == "redacted_thinking":
            data = {"type": "redacted_thinking", "data": block.data}
            return [ThoughtBlock(Thinking(self._facts.provider, "", data))]
        pieces = self._thoughts.pop(index)
        text = "".join(pieces.thinking)
        data = {"type": "thinking", "thinking": text, "signature": "".join(pieces.signature)}
        return [ThoughtBlock(Thinking(self._facts.provider, text, data))]

    def _count(self, data: msgspec.Raw) -> None:
        """Later counts are totals: they replace earlier ones, a missing one keeps what was known."""
        usage = decode_usage(data, _AnthropicUsage) if data else None
        if usage is None:
            return
        for name in usage.__struct_fields__:
            if (value := getattr(usage, name)) is not None:
                setattr(self._counts, name, value)
