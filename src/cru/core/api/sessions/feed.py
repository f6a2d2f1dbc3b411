"""What scripts hear of a session: its stream as tables, one queue a reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any

from cru.core.events.payloads import (
    AgentResponded,
    AgentThinking,
    MessageReceived,
    StreamingDelta,
    ToolCalled,
    ToolCompleted,
    ToolFailed,
)
from cru.core.events.stream import Published, Stream

MOST_WAITING = 10_000
"""Events that wait for one reader; of a reader that does not read the oldest go, and it hears how many."""
_PAYLOADS = (MessageReceived, StreamingDelta, AgentThinking, AgentResponded, ToolCalled, ToolCompleted, ToolFailed)


class EventReader:
    """Gives one event after the other: called, and as an asynchronous iterator."""

    def __init__(self) -> None:
        self._events: deque[dict[str, Any]] = deque()
        self._missed = 0
        self._is_closed = False
        self._changed = asyncio.Event()

    def put(self, event: dict[str, Any]) -> None:
        if self._is_closed:
            return
        if len(self._events) >= MOST_WAITING:
            self._events.popleft()
            self._missed += 1
        self._events.append(event)
        self._changed.set()

    def close(self) -> None:
        """What waits can yet be read."""
        self._is_closed = True
        self._changed.set()

    async def __call__(self, *_: object) -> dict[str, Any] | None:
        """The next one, waiting for it; None at the end."""
        while not self._events:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        if self._missed:
            missed, self._missed = self._missed, 0
            return {"type": "stream_gap", "data": {"missed": missed}, "session_id": self._events[0]["session_id"]}
        return self._events.popleft()

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> dict[str, Any]:
        event = await self()
        if event is None:
            raise StopAsyncIteration
        return event


class SessionFeed:
    """All readers of one session, with the plugin of each."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._readers: dict[EventReader, str] = {}
        self._message_id = ""

    def follow(self, stream: Stream) -> None:
        """Hand on what this stream brings."""
        stream.subscribe(self._hand_on, *_PAYLOADS)

    def add(self, reader: EventReader, plugin: str) -> EventReader:
        self._readers[reader] = plugin
        return reader

    def close(self, plugin: str | None = None, reader: EventReader | None = None) -> int:
        """End the readers of a plugin, or all, or one; how many."""
        ending = [r for r, name in self._readers.items() if (r is reader if reader else plugin in (None, name))]
        for closed in ending:
            del self._readers[closed]
            closed.close()
        return len(ending)

    def tell(self, type: str, **data: Any) -> None:
        event = {"type": type, "data": data, "session_id": self._id}
        for reader in self._readers:
            reader.put(event)

    def _hand_on(self, item: Published[Any]) -> None:
        if self._readers:
            for type, data in self._events_of(item.payload):
                self.tell(type, **data)

    def _events_of(self, payload: object) -> Iterator[tuple[str, dict[str, Any]]]:
        match payload:
            case MessageReceived():
                self._message_id = payload.ref
                yield "user_message", {"content": payload.content, "message_id": payload.ref}
            case StreamingDelta():
                yield "text_delta", {"content": payload.delta}
            case AgentThinking():
                yield "thinking", {"content": payload.thought}
            case ToolCalled():
                yield "tool_call", {"call_id": payload.call_id, "tool": payload.name, "args": payload.args}
            case ToolCompleted():
                yield "tool_result", _result(payload, {"result": payload.result})
            case ToolFailed():
                yield "tool_result", _result(payload, {"error": payload.error})
            case AgentResponded(final=True):
                data = {
                    "message_id": self._message_id,
                    "full_response": payload.display,
                    "tokens": payload.usage.tokens,
                }
                yield "message_complete", data
            case AgentResponded() if payload.display:
                yield "segment_complete", {"content": payload.display}


def _result(payload: ToolCompleted | ToolFailed, result: dict[str, str]) -> dict[str, Any]:
    return {"call_id": payload.call_id, "tool": payload.name, "result": result}
