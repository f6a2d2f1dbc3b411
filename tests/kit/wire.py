"""Replies as bytes, in the two languages that the adapters speak: OpenAI chat completions and Anthropic messages; the path decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from tests.kit import wire_peers
from tests.kit.steps import Call, Reply

Event = dict[str, Any]


def render(path: str, reply: Reply, number: int, stream: bool) -> bytes:
    """The body of the answer to request `number` (from 0); the path decides the language."""
    path = path.partition("?")[0]
    if path.endswith("/responses"):
        events = list(wire_peers.responses(reply, number, stream))
        return b"".join(_sse(e, e["type"]) for e in events) if stream else msgspec.json.encode(events[0])
    if "enerateContent" in path:
        chunk = wire_peers.gemini(reply, number)
        return _sse(chunk) if stream else msgspec.json.encode(chunk)
    anthropic = path.endswith("/messages")
    if not stream or reply.json:
        return msgspec.json.encode(_anthropic_message(reply, number) if anthropic else _openai_message(reply, number))
    if anthropic:
        return b"".join(_sse(e, e["type"]) for e in _anthropic_events(reply, number))
    body = b"".join(_sse(e) for e in _openai_events(reply, number))
    return body if reply.error else body + b"data: [DONE]\n\n"


def unfinished(path: str, text: str) -> bytes:
    """The beginning of a stream: a first delta, and no end."""
    if path.endswith("/messages"):
        events = list(_anthropic_events(Reply(text), 0))[: 4 if text else 1]
        return b"".join(_sse(e, e["type"]) for e in events)
    return _sse(_chunk(0, {"role": "assistant", "content": text}))


def _sse(event: Event, name: str = "") -> bytes:
    head = b"event: %s\n" % name.encode() if name else b""
    return head + b"data: %s\n\n" % msgspec.json.encode(event)


def _pieces(text: str, size: int) -> Iterator[str]:
    step = size or max(len(text), 1)
    return (text[i : i + step] for i in range(0, len(text), step))


def _arguments(call: Call) -> str:
    return call.args if isinstance(call.args, str) else msgspec.json.encode(call.args).decode()


def _call_id(call: Call, number: int, i: int) -> str:
    return call.id or f"call_{number}_{i}"


# ---- OpenAI ----


def _chunk(number: int, delta: Event, finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "model": "mock", "choices": [choice]}


def _openai_usage(reply: Reply) -> Event:
    u = reply.usage
    return {
        "prompt_tokens": u.input,
        "completion_tokens": u.output,
        "total_tokens": u.input + u.output,
        "prompt_tokens_details": {"cached_tokens": u.cache_read},
        "cost": u.cost,
    }


def _openai_message(reply: Reply, number: int) -> Event:
    message: Event = {"role": "assistant", "content": reply.text or None}
    if reply.think:
        message["reasoning_content"] = reply.think
    if reply.calls:
        message["tool_calls"] = [
            {"id": _call_id(c, number, i), "type": "function", "function": {"name": c.name, "arguments": _arguments(c)}}
            for i, c in enumerate(reply.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": _openai_reason(reply)}
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "mock"}
    return {**head, "choices": [choice], "usage": _openai_usage(reply)}


def _openai_reason(reply: Reply) -> str:
    return reply.reason or ("tool_calls" if reply.calls else "stop")


def _openai_events(reply: Reply, number: int) -> Iterator[Event]:
    if reply.message:
        yield _openai_message(reply, number)
        return
    yield _chunk(number, {"role": "assistant", "content": ""})
    for piece in _pieces(reply.think, reply.pieces):
        yield _chunk(number, {"reasoning_content": piece})
    for piece in _pieces(reply.text, reply.pieces):
        yield _chunk(number, {"content": piece})
    if reply.error:
        yield {"error": {"code": 502, "message": reply.error}, "choices": []}
        return
    for i, call in enumerate(reply.calls):
        start = {"index": i, "id": _call_id(call, number, i), "type": "function"}
        yield _chunk(number, {"tool_calls": [{**start, "function": {"name": call.name, "arguments": ""}}]})
        for piece in _pieces(_arguments(call), reply.pieces):
            yield _chunk(number, {"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
    yield _chunk(number, {}, _openai_reason(reply))
    yield {**_chunk(number, {}), "choices": [], "usage": _openai_usage(reply)}


# ---- Anthropic ----


def _anthropic_usage(reply: Reply) -> Event:
    u = reply.usage
    return {
        "input_tokens": u.input - u.cache_read - u.cache_write,
        "output_tokens": u.output,
        "cache_read_input_tokens": u.cache_read,
        "cache_creation_input_tokens": u.cache_write,
    }


def _anthropic_reason(reply: Reply) -> str:
    return reply.reason or ("tool_use" if reply.calls else "end_turn")


def _anthropic_blocks(reply: Reply, number: int) -> Iterator[tuple[Event, list[Event]]]:
    """Each block as (empty block, its deltas)."""
    if reply.think:
        deltas = [{"type": "thinking_delta", "thinking": p} for p in _pieces(reply.think, reply.pieces)]
        signature = {"type": "signature_delta", "signature": f"signature-{number}"}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
    if reply.text:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": p} for p in _pieces(reply.text, reply.pieces)],
        )
    for i, call in enumerate(reply.calls if not reply.error else ()):
        block = {"type": "tool_use", "id": _call_id(call, number, i), "name": call.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": p} for p in _pieces(_arguments(call), reply.pieces)]


def _anthropic_message(reply: Reply, number: int) -> Event:
    content: list[Event] = []
    if reply.think:
        content.append({"type": "thinking", "thinking": reply.think, "signature": f"signature-{number}"})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for i, call in enumerate(reply.calls):
        args = msgspec.json.decode(_arguments(call))
        content.append({"type": "tool_use", "id": _call_id(call, number, i), "name": call.name, "input": args})
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "mock"}
    end = {"stop_reason": _anthropic_reason(reply), "stop_sequence": None, "usage": _anthropic_usage(reply)}
    return {**head, "content": content, **end}


def _anthropic_events(reply: Reply, number: int) -> Iterator[Event]:
    whole = _anthropic_message(Reply(usage=reply.usage), number)
    usage = {**whole["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": {**whole, "stop_reason": None, "usage": usage}}
    yield {"type": "ping"}
    for i, (block, deltas) in enumerate(_anthropic_blocks(reply, number)):
        yield {"type": "content_block_start", "index": i, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": i, "delta": delta}
        yield {"type": "content_block_stop", "index": i}
    if reply.error:
        yield {"type": "error", "error": {"type": "overloaded_error", "message": reply.error}}
        return
    end = {"stop_reason": _anthropic_reason(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": reply.usage.output}}
    yield {"type": "message_stop"}
