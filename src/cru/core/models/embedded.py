"""A small model inside this process (extra `local`): llama.cpp through xllamacpp, weights from a GGUF file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from importlib.util import find_spec
from os import urandom
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cru.core.base.values.messages import Delta, End, Message, Request, Span, Text, ToolSpec, system_text
from cru.core.models.encoding import ConversationEncoder, LastValue, PictureSource, PlainNotation, assemble
from cru.core.models.failures import RequestFacts
from cru.core.models.openai_compatible import OpenAIReply
from cru.core.models.protocol import ModelUnavailable, NoModel, RequestBody, Say, tell_dropped
from cru.core.models.tool_schema import call_schema, parse_call

if TYPE_CHECKING:
    import xllamacpp

WINDOW = 8192
MAX_TOKENS = 512
SYSTEM_CHARACTERS = 800  # about 200 tokens: a long system prompt is all that a very small model then talks about

_PASSED_ON = (
    "temperature",
    "top_p",
    "stop",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "response_format",
    "top_k",
    "min_p",
)
_HANDLED = (*_PASSED_ON, "max_tokens", "tool_choice", "prompt_caching", "parallel_tool_calls", "reasoning")
_FORCED = b',"response_format":{"type":"json_schema"'
_encode = msgspec.json.encode


class EmbeddedModel:
    """See protocol.Model. The weights are loaded at the first request, in a worker thread.

    With tools in the request the reply is forced to be one call of them, except right after a tool's result and under
    `tool_choice = "none"`: such models do not decide by themselves. The system prompt is cut to about 200 tokens unless a
    context_window above 8192 is set for the model."""

    provider = "local"
    tools_by_default = False
    takes_images = False

    def __init__(self, name: str, path: Path, context_window: int | None, *, say: Say) -> None:
        _require_library()
        self.name, self._path, self._say = name, path, say
        self._window = context_window or WINDOW
        self._facts = RequestFacts(self.provider, name)
        self._messages = ConversationEncoder(PlainNotation(self._encode_message))
        self._head, self._format = LastValue(), LastValue()
        self._announced: set[str] = set()
        self._pictures = PictureSource(self.provider, name, False, say)
        self._server: xllamacpp.Server | None = None
        self._loading = asyncio.Lock()

    def encode(self, request: Request) -> RequestBody:
        """The request's body; what may change from one request to the next comes after the messages."""
        system = self._fit_system(request.system)
        key = (request.model, system, request.parameters)
        head = self._head.get(key, lambda: self._encode_head(request, system))
        closing = b"]}"
        if _forces_a_call(request):
            closing = b"]%b}" % self._format.get(request.tools, lambda: _response_format(request.tools))
        return assemble(head, self._messages.encode(request.messages), closing)

    def _encode_message(self, message: Message) -> bytes:
        if message.images:
            message = replace(message, content=self._pictures.writer().text(message))
        return _encode_message(message)

    async def stream(self, body: RequestBody) -> AsyncGenerator[Delta, None]:
        """Raises ModelUnavailable if the weights cannot be loaded, ContextTooLong, BrokenReply."""
        server = await self._ensure_server()
        reply = OpenAIReply(self._facts)
        pieces: list[str] | None = [] if _FORCED in body.parts[-1] else None
        async for data in _run_request(server, body.join()):
            for delta in reply.read(data):
                if pieces is not None and isinstance(delta, Text):
                    pieces.append(delta.text)
                else:
                    yield delta
        for delta in self._to_call("".join(pieces)) if pieces else ():
            yield delta
        for delta in reply.end():
            yield End("tool_calls", delta.usage) if pieces and isinstance(delta, End) else delta

    async def close(self) -> None:
        """Frees the weights."""
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(_free, [server])

    def _to_call(self, text: str) -> list[Delta]:
        call = parse_call(text, 0, f"call_local_{_new_call_id()}")
        return [call] if call is not None else [Text(text)]

    async def _ensure_server(self) -> xllamacpp.Server:
        async with self._loading:
            if self._server is None:
                try:
                    self._server = await asyncio.to_thread(_load_server, self._path, self._window)
                except RuntimeError as error:
                    raise ModelUnavailable(f"cannot load {self._path}: {error}", "is it a whole GGUF file?") from error
            return self._server

    def _fit_system(self, spans: tuple[Span, ...]) -> str:
        text = system_text(spans)
        if self._window > WINDOW or len(text) <= SYSTEM_CHARACTERS:
            return text
        if "system" not in self._announced:
            self._announced.add("system")
            self._say(f"local: the system prompt is cut to {SYSTEM_CHARACTERS} characters for {self.name}")
        return text[:SYSTEM_CHARACTERS]

    def _encode_head(self, request: Request, system: str) -> bytes:
        parameters = request.parameters
        for name in parameters:
            if name not in _HANDLED:
                tell_dropped(self._announced, self._say, self.provider, name)
        head: dict[str, object] = {"model": self.name, "stream": True, "stream_options": {"include_usage": True}}
        head["max_tokens"] = parameters.get("max_tokens") or MAX_TOKENS
        head |= {key: parameters[key] for key in _PASSED_ON if parameters.get(key) is not None}
        first = _encode({"role": "system", "content": system or "You are a helpful assistant."})
        return _encode(head)[:-1] + b',"messages":[' + first


def _require_library() -> None:
    if find_spec("xllamacpp") is None:
        raise NoModel("local models need the library xllamacpp", "pip install xllamacpp")


def _load_server(path: Path, window: int) -> xllamacpp.Server:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.verbosity = 0
    parameters.warmup = False
    parameters.api_keys = [os.urandom(16).hex()]  # the library also opens a port on loopback: nobody may use it
    # one core stays free: with all of them busy the library's spinning threads slow each other down twentyfold
    threads = max(1, (os.cpu_count() or 2) - 1)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    return xllamacpp.Server(parameters)


def _free(held: list[object]) -> None:
    """Let the last reference go in a worker thread: the library waits for its own threads then."""
    held.clear()


async def _run_request(server: xllamacpp.Server, body: bytes) -> AsyncGenerator[bytes, None]:
    """The events of one request as the library makes them. When this generator is closed, the next token is the last one."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()
    cancelled = False

    def on_event(event: str | bytes) -> bool:
        if not cancelled:
            loop.call_soon_threadsafe(queue.put_nowait, event.encode() if isinstance(event, str) else event)
        return cancelled

    task = loop.run_in_executor(None, server.handle_chat_completions, body.decode(), on_event)
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
    finally:
        cancelled = True
    if error := task.exception():
        raise ModelUnavailable(f"local: {error}") from error


def _forces_a_call(request: Request) -> bool:
    choice = request.parameters.get("tool_choice")
    if not request.tools or choice == "none":
        return False
    after_result = bool(request.messages) and request.messages[-1].role == "tool"
    return choice == "required" or not after_result


def _response_format(tools: tuple[ToolSpec, ...]) -> bytes:
    return _FORCED + b',"json_schema":{"name":"call","schema":' + _encode(call_schema(tools)) + b"}}"


def _encode_message(message: Message) -> bytes:
    """Calls and results as plain text: chat templates of small models have no words for them."""
    if message.role == "tool":
        return _encode({"role": "user", "content": f"The result is:\n{message.content}\nTell me what it says."})
    used = "".join(f"I used the tool {call.name}." for call in message.calls)
    content = message.content or used
    return _encode({"role": message.role, "content": content}) if content else b""


def _new_call_id() -> str:
    return urandom(6).hex()
