"""The adapter for OpenAI, OpenRouter, Ollama, LM Studio, llama.cpp, vLLM and every other server of their kind."""

from collections.abc import AsyncGenerator
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from cru.core.base.values.messages import (
    CallPart,
    Delta,
    End,
    Message,
    Request,
    Text,
    ToolSpec,
    Usage,
    system_text,
)
from cru.core.models import encoding
from cru.core.models.encoding import ConversationEncoder, LastBytes, LastValue, PictureAdapter, assemble
from cru.core.models.exchange import NOT_JSON, Exchange, decode_usage, unfinished_error, unreadable_error
from cru.core.models.failures import ErrorObject, RequestFacts, check_reason, error_for_object, to_error_object
from cru.core.models.protocol import ID_CHARACTERS, RequestBody, Say, tell_dropped

if TYPE_CHECKING:
    from cru.core.models.reasoning import ThinkingParts

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
            identity = encoding.valid_id(message.call_id, ID_CHARACTERS)
            return _encode({"role": "tool", "tool_call_id": identity, "content": message.content})
        if message.role == "user":
            return _encode({"role": "user", "content": message.content})
        return self._reply(message) if message.content or message.calls else b""

    def _reply(self, message: Message) -> bytes:
        encoded: dict[str, object] = {"role": "assistant", "content": message.content or None}
        calls = encoding.valid_calls(message.calls, ID_CHARACTERS)
        all_thinking = message.thinking
        if all_thinking and calls is not message.calls:
            from cru.core.models.valid_history import rename_in_thinking

            all_thinking = rename_in_thinking(message, calls)
        for thinking in all_thinking:
            if thinking.provider == self.provider:
                for key, value in thinking.data.items():
                    encoded[key] = encoded[key] + value if key in encoded else value
        if calls:
            encoded["tool_calls"] = written = []
            for call in calls:
                function = {"name": call.name, "arguments": call.arguments or "{}"}
                written.append({"id": call.id, "type": "function", "function": function})
        return _encode(encoded)


def _encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    return _encode(
        [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": encoding.tool_schema(t)},
            }
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


class ContentPart(Struct):
    text: str | None = None


class Part(Struct):
    content: str | list[ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, object]] | None = None
    tool_calls: list[_CallDelta] | None = None
    refusal: str | None = None


class _ReplyChoice(Struct):
    delta: Part | None = None
    message: Part | None = None
    finish_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    error: ErrorObject | str | None = None
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
        self._thinking: ThinkingParts | None = None
        self._last: _ReplyChoice | None = None
        self._has_text = False
        self._from_messages = ""
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
                return [delta for line in data.split(b"\n") for delta in self.read(line)]
            from cru.core.models.irregular import decode_irregular

            decoded = decode_irregular(self._facts, _chunk_decoder(), data, error)
            if decoded is None:
                self.done = self.done or data.strip() == b"[DONE]"
                return []
            chunk = decoded
        if chunk.error is not None and (failure := to_error_object(chunk.error)):
            raise error_for_object(self._facts, failure)
        usage = decode_usage(chunk.usage, _OpenAIUsage) if chunk.usage else None
        if usage is not None:
            self._usage = _to_usage(usage)
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._choice(choice, deltas)
        if not chunk.choices and usage is None:
            from cru.core.models.irregular import raise_unlabelled_error

            raise_unlabelled_error(self._facts, data)
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
        if not self._reason and not (self.done and self._gives_no_reasons):
            raise unfinished_error(self._facts)
        reason = self._reason or "stop"
        if self._refused and reason == "stop":
            reason = "refusal"
        if self._calls.count and reason in _CALL_REASONS:
            reason = "tool_calls"
        thinking = self._thinking.block(self._facts.provider) if self._thinking else []
        return [*thinking, End(reason, self._usage)]

    @property
    def _gives_no_reasons(self) -> bool:
        """Whether the server does not know finish reasons: others send the field in each event, empty up to the last one."""
        return self._last is None or self._last.finish_reason is msgspec.UNSET

    def _choice(self, choice: _ReplyChoice, deltas: list[Delta]) -> None:
        self._last = choice
        if choice.finish_reason or choice.error:
            self._finish(choice)
        part = choice.delta
        if choice.message is not None:
            part = self._unseen(part or Part(), choice.message)
        if part is None:
            return
        if part.reasoning_details or part.reasoning_content or part.reasoning:
            self._think(part, deltas)
        if part.refusal:
            self._refused = True
        if content := part.content or part.refusal:
            text = content if isinstance(content, str) else "".join(piece.text or "" for piece in content)
            if text:
                self._has_text = True
                deltas.append(Text(text))
        for call in part.tool_calls or ():
            deltas.append(self._calls.part(call))

    def _finish(self, choice: _ReplyChoice) -> None:
        self._reason = choice.finish_reason or ""
        if failure := to_error_object(choice.error):
            raise error_for_object(self._facts, failure)
        check_reason(self._facts, self._reason)

    def _think(self, part: Part, deltas: list[Delta]) -> None:
        if self._thinking is None:
            from cru.core.models.reasoning import ThinkingParts

            self._thinking = ThinkingParts()
        self._thinking.add(part.reasoning_content, part.reasoning, part.reasoning_details, deltas)

    def _unseen(self, part: Part, message: Part) -> Part:
        """What an event brings that has a whole `message`, alone or beside its delta."""
        from cru.core.models.irregular import add_unseen

        self._refused = self._refused or bool(message.refusal)
        known_text = self._from_messages if self._from_messages or not self._has_text else None
        self._from_messages = add_unseen(part, message, known_text, bool(self._calls.count), self._thinking is not None)
        return part


class CallSoFar(Struct):
    """A call of a reply that is being read.

    id: as the server gave it, "" if it gave none
    pieces: of its arguments
    checks: how often its arguments were tested for being complete
    """

    id: str
    name: str
    pieces: list[str]
    checks: int = 0


class _Calls:
    """Tells the tool calls of one reply apart. Servers differ: a right index, index 0 for every call, or no index at all."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._known: list[CallSoFar] = []
        self._by_id: dict[str, int] = {}

    @property
    def count(self) -> int:
        return len(self._known)

    def part(self, call: _CallDelta) -> CallPart:
        function = call.function or _FunctionDelta()
        name, arguments = function.name or "", function.arguments
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else _encode(arguments).decode()
        wire = -1 if call.index is None else call.index
        slot = self._slots.get(wire)
        if slot is not None and call.id and self._known[slot].id != call.id:
            slot = self._by_id.get(call.id, slot)  # fragments of parallel calls that share an index may alternate
        if slot is None and not name and self._known:
            slot = self._continued(call)
        if slot is not None:
            known = self._known[slot]
            if name or (known.pieces and arguments[:1] == "{"):
                from cru.core.models.irregular import fit_fragment

                is_new, name, arguments = fit_fragment(known, call.index, call.id or "", name, arguments)
                slot = None if is_new else slot
        if slot is None:
            return self._begin(wire, call.id or "", name, arguments)
        known.name += name
        if arguments:
            known.pieces.append(arguments)
        return CallPart(slot, "", name, arguments)

    def _continued(self, call: _CallDelta) -> int | None:
        """The call that a fragment without a name continues although its index is new."""
        if call.id:
            return self._by_id.get(call.id)
        return len(self._known) - 1 if call.index is None else None

    def _begin(self, wire: int, identity: str, name: str, arguments: str) -> CallPart:
        slot = self._slots[wire] = len(self._known)
        taken = self._by_id.setdefault(identity, slot) != slot
        self._known.append(CallSoFar(identity, name, [arguments] if arguments else []))
        if taken or not identity:
            from cru.core.models.irregular import new_call_id

            identity = new_call_id()
        return CallPart(slot, identity, name, arguments)


def _to_usage(usage: _OpenAIUsage) -> Usage:
    details = usage.prompt_tokens_details or _Details()
    return Usage(
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cache_read=details.cached_tokens or usage.prompt_cache_hit_tokens or 0,
        cache_write=details.cache_write_tokens or 0,
        cost=usage.cost,
    )
