"""Big fields of events are made only when they are read, and are no change when they are not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import World

from cru.core.api.event_table import table
from cru.core.api.event_table.lazy import Lazy, LazyDict, raw_items, resolve_lazy
from cru.core.base.values.messages import Message
from cru.core.events.bus import Outcome
from cru.core.events.payloads import MessageBeforeSend, ToolCompleted

MESSAGES = tuple(Message("user", "x" * 500, ref=str(n)) for n in range(1000))
LUA = 'cru.on("%s", function(ctx, event) %s end)'
PYTHON = "from cru import on\ndef handler(ctx, event):\n    %s\non('%s', handler)\n"


def dispatched(tmp_path: Path, source: str, payload: Any) -> Outcome[Any]:
    """What becomes of the payload."""
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / ("demo.py" if "import" in source else "demo.lua")).write_text(source)
    world = World(tmp_path, "text: fine\n")

    async def main() -> Outcome[Any]:
        await world.asked("hi")
        return await world.session.parts.bus.dispatch(payload)

    return asyncio.run(main())


def test_a_field_is_made_when_it_is_read_and_once() -> None:
    calls: list[int] = []

    def make() -> list[int]:
        calls.append(1)
        return [2]

    fields = LazyDict(a=1, b=Lazy(make))
    assert (fields["a"], "b" in fields, len(fields), calls) == (1, True, 2, [])
    assert isinstance(dict(raw_items(fields))["b"], Lazy)
    assert (fields["b"], fields.get("b"), fields.get("c", 3), calls) == ([2], [2], 3, [1])
    fields["b"].append(3)
    assert fields["b"] == [2, 3]


@pytest.mark.parametrize(
    "whole",
    [dict, lambda t: {**t}, lambda t: t.copy(), lambda t: dict(t.items()), lambda t: t | {}],
    ids=["dict", "spread", "copy", "items", "merge"],
)
def test_a_copy_holds_the_values(whole: Any) -> None:
    fields = LazyDict(a=1, b=Lazy(lambda: [2]))
    assert {key: resolve_lazy(value) for key, value in whole(fields).items()} == {"a": 1, "b": [2]}
    assert fields == {"a": 1, "b": [2]}


@pytest.mark.parametrize(
    "source",
    [LUA % ("message:before_send", "return event"), PYTHON % ("return event", "message:before_send")],
    ids=["lua", "python"],
)
def test_what_was_not_read_is_no_change(tmp_path: Path, source: str) -> None:
    outcome = dispatched(tmp_path, source, MessageBeforeSend("m", {}, MESSAGES))
    assert outcome.edits == ()
    assert outcome.payload.messages is MESSAGES


@pytest.mark.parametrize(
    "source",
    [
        LUA % ("message:before_send", "local n = #event.messages n = n + #event.payload.messages return event"),
        PYTHON % ("len(event['messages']), len(event['payload']['messages']); return event", "message:before_send"),
    ],
    ids=["lua", "python"],
)
def test_what_was_read_and_not_changed_is_no_change(tmp_path: Path, source: str) -> None:
    assert dispatched(tmp_path, source, MessageBeforeSend("m", {}, MESSAGES)).edits == ()


@pytest.mark.parametrize(
    "source",
    [
        LUA % ("message:before_send", "table.remove(event.messages, 1) return event"),
        LUA % ("message:before_send", "table.remove(event.payload.messages, 1) return event"),
        PYTHON % ("del event['messages'][0]; return event", "message:before_send"),
        PYTHON % ("del event['payload']['messages'][0]; return event", "message:before_send"),
    ],
    ids=["lua flat", "lua payload", "python flat", "python payload"],
)
def test_what_was_changed_is_a_change_whichever_way(tmp_path: Path, source: str) -> None:
    outcome = dispatched(tmp_path, source, MessageBeforeSend("m", {}, MESSAGES))
    assert outcome.payload.messages == MESSAGES[1:]


def test_a_long_result_can_be_changed(tmp_path: Path) -> None:
    source = LUA % ("tool:completed", "return {result = event.result .. #event.payload.result}")
    outcome = dispatched(tmp_path, source, ToolCompleted("bash", {}, "y" * 100_000, "c"))
    assert outcome.payload.result == "y" * 100_000 + "100000"


@pytest.mark.parametrize("language", ["lua", "python"])
@pytest.mark.parametrize("field", ["model", "messages"])
def test_messages_that_nobody_reads_are_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, field: str
) -> None:
    copied: list[Any] = []
    copy = table._copy

    def watched(value: object) -> object:
        copied.append(value)
        return copy(value)

    monkeypatch.setattr(table, "_copy", watched)
    read = f"local value = event.{field}" if language == "lua" else f"event['{field}']"
    source = LUA % ("message:before_send", read) if language == "lua" else PYTHON % (read, "message:before_send")
    dispatched(tmp_path, source, MessageBeforeSend("m", {}, MESSAGES))
    assert (MESSAGES in copied) is (field == "messages")
