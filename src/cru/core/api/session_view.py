"""`ctx.session`: the conversation as a handler sees it; what is dear to make is made when it is read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from cru.core.api import state
from cru.core.api.host import HOST, Host, Object
from cru.core.base.values.messages import Message

TODO = re.compile(r"^\s*[-*]\s+\[([ xX])\]\s+(.*)$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class ScriptState(Object):
    """`ctx.session.state`: the same values as `cru.state`."""

    __slots__ = ("_host",)
    METHODS = ("get", "set", "clear")

    def __init__(self, host: Host) -> None:
        self._host = host

    def get(self, key: str) -> object:
        return self._call_as_host(state.get, key)

    def set(self, key: str, value: object = None) -> None:
        self._call_as_host(state.set_, key, value)

    def clear(self, key: str) -> None:
        self._call_as_host(state.clear, key)

    def _call_as_host(self, function: Any, *args: Any) -> Any:
        token = HOST.set(self._host)
        try:
            return function(*args)
        finally:
            HOST.reset(token)


class SessionView(Object):
    """id, transcript (see `_transcript`), message_count, todos ({text, done, line} each), state."""

    __slots__ = ("_host",)
    FIELDS = ("id", "transcript", "message_count", "todos", "state", "mode")

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def id(self) -> str:
        return self._host.session.parts.store.session_id

    @property
    def transcript(self) -> list[dict[str, object]]:
        return _transcript(self._host.session.parts.history.messages())

    @property
    def message_count(self) -> int:
        return len(self._host.session.parts.history.messages())

    @property
    def todos(self) -> list[dict[str, object]]:
        """Checkbox lines of the todo list, and of the last reply, outside of fenced code."""
        replies = [m.content for m in self._host.session.parts.history.messages() if m.role == "assistant"]
        texts = [self._host.session.parts.store.read_text("todos.md"), *replies[-1:]]
        return [
            {"text": match[2], "done": match[1] != " ", "line": number}
            for text in texts
            for number, line in _lines_outside_code(text)
            if (match := TODO.match(line))
        ]

    @property
    def state(self) -> ScriptState:
        return ScriptState(self._host)

    @property
    def mode(self) -> str:
        return self._host.session.parts.gate.mode


def _lines_outside_code(text: str) -> list[tuple[int, str]]:
    """Lines of Markdown with their numbers, without fenced code. A fence that nothing closes hides nothing: a list must not end at one."""
    kept: list[tuple[int, str]] = []
    code: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = match[1] if (match := FENCE.match(line)) else ""
        if not fence and mark:
            fence = mark
        elif fence and mark.startswith(fence) and not line.strip().strip(mark[0]):
            fence, code = "", []
            continue
        (code if fence else kept).append((number, line))
    return kept + code


def _transcript(messages: Iterable[Message]) -> list[dict[str, object]]:
    """{role, content} each; a reply that calls tools has `tool_calls` ({id, name, arguments} each), and a result says whose it is:
    `tool_call_id`, `name`, `is_error`."""
    names: dict[str, str] = {}
    lines: list[dict[str, object]] = []
    for message in messages:
        line: dict[str, object] = {"role": message.role, "content": message.content}
        if message.calls:
            names.update((call.id, call.name) for call in message.calls)
            line["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls
            ]
        if message.call_id:
            line |= {
                "tool_call_id": message.call_id,
                "name": names.get(message.call_id, ""),
                "is_error": message.is_error,
            }
        lines.append(line)
    return lines
