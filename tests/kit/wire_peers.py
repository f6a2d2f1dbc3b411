"""Replies as bytes in two more languages, for other programs: OpenAI's responses and Gemini's generateContent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from tests.kit.steps import Call, Reply

Event = dict[str, Any]
USAGE = {
    "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110,
}  # fmt: skip
GEMINI_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
FREEFORM = "\0freeform"
"""The key of the one argument of a tool that takes text and no JSON."""


def responses(reply: Reply, number: int, stream: bool) -> Iterator[Event]:
    """The events of a response, or the one document."""
    items = [*_message(reply, number), *(_call(call, number, i) for i, call in enumerate(reply.calls))]
    whole = {
        "id": f"resp_{number}", "object": "response", "created_at": 1_700_000_000, "model": "mock", "status": "completed",
        "output": items, "usage": USAGE, "error": None,
    }  # fmt: skip
    if not stream:
        yield whole
        return
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    for i, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": i, "item": {**item, "status": "in_progress"}}
        if item["type"] == "message":
            delta = {"item_id": item["id"], "output_index": i, "content_index": 0, "delta": reply.text}
            yield {"type": "response.output_text.delta", **delta}
        yield {"type": "response.output_item.done", "output_index": i, "item": item}
    yield {"type": "response.completed", "response": whole}


def _message(reply: Reply, number: int) -> Iterator[Event]:
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        head = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        yield {**head, "content": content}


def _call(call: Call, number: int, i: int) -> Event:
    head = {"id": f"fc_{number}_{i}", "call_id": f"call_{number}_{i}", "name": call.name, "status": "completed"}
    if isinstance(call.args, dict) and FREEFORM in call.args:
        return {"type": "custom_tool_call", **head, "input": call.args[FREEFORM]}
    args = call.args if isinstance(call.args, str) else msgspec.json.encode(call.args).decode()
    namespace, _, name = call.name.rpartition(".")
    named = {"name": name, "namespace": namespace} if namespace else {}
    return {"type": "function_call", **head, **named, "arguments": args}


def gemini(reply: Reply, number: int) -> Event:
    """The one chunk, or the one document."""
    parts: list[Event] = [{"text": reply.text}] if reply.text or not reply.calls else []
    parts += [{"functionCall": {"name": call.name, "args": call.args}} for call in reply.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": "STOP"}
    return {
        "candidates": [candidate], "usageMetadata": GEMINI_USAGE, "modelVersion": "mock", "responseId": f"r{number}",
    }  # fmt: skip
