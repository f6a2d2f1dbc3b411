"""Big fields of events are made only when they are read, and are no change when they are not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support import World

from cru.events.bus import Outcome
from cru.events.payloads import MessageBeforeSend, ToolCompleted
from cru.namespace.event_table.lazy import Lazy, LazyDict, raw_items, resolve_lazy
from cru.values.messages import Message

MESSAGES = tuple(Message("user", "x" * 500, ref=str(n)) for n in range(1000))
LUA = 'cru.on("%s", function(ctx, event) %s end)'
PYTHON = "from cru import on\ndef handler(ctx, event):\n    %s\non('%s', handler)\n"


def dispatched(tmp_path: Path, source: str, payload: Any, times: int = 0) -> tuple[Outcome[Any], World, float]:
    """What becomes of the payload; the CPU seconds of `times` more dispatches."""
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / ("demo.py" if "import" in source else "demo.lua")).write_text(source)
    world = World(tmp_path, "text: fine\n")

    async def main() -> tuple[Outcome[Any], float]:
        await world.asked("hi")
        bus = world.session.parts.bus
        outcome = await bus.dispatch(payload)
        best = 9.0
        for _ in range(5):
            begun = time.thread_time()
            for _ in range(times):
                await bus.dispatch(payload)
            best = min(best, time.thread_time() - begun)
        return outcome, best

    outcome, seconds = asyncio.run(main())
    return outcome, world, seconds


def test_a_field_is_made_when_it_is_read_and_once() -> None:
    calls: list[int] = []

    def make() -> list[int]:
        calls.append(1)
        return [2]

    table = LazyDict(a=1, b=Lazy(make))
    assert (table["a"], "b" in table, len(table), calls) == (1, True, 2, [])
    assert isinstance(dict(raw_items(table))["b"], Lazy)
    assert (table["b"], table.get("b"), table.get("c", 3), calls) == ([2], [2], 3, [1])
    table["b"].append(3)
    assert table["b"] == [2, 3]


@pytest.mark.parametrize(
    "whole",
    [dict, lambda t: {**t}, lambda t: t.copy(), lambda t: dict(t.items()), lambda t: t | {}],
    ids=["dict", "spread", "copy", "items", "merge"],
)
def test_a_copy_holds_the_values(whole: Any) -> None:
    table = LazyDict(a=1, b=Lazy(lambda: [2]))
    assert {key: resolve_lazy(value) for key, value in whole(table).items()} == {"a": 1, "b": [2]}
    assert table == {"a": 1, "b": [2]}


@pytest.mark.parametrize(
    "source",
    [LUA % ("message:before_send", "return event"), PYTHON % ("return event", "message:before_send")],
    ids=["lua", "python"],
)
def test_what_was_not_read_is_no_change(tmp_path: Path, source: str) -> None:
    outcome, _, _ = dispatched(tmp_path, source, MessageBeforeSend("m", {}, MESSAGES))
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
    assert dispatched(tmp_path, source, MessageBeforeSend("m", {}, MESSAGES))[0].edits == ()


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
    outcome = dispatched(tmp_path, source, MessageBeforeSend("m", {}, MESSAGES))[0]
    assert outcome.payload.messages == MESSAGES[1:]


def test_a_long_result_can_be_changed(tmp_path: Path) -> None:
    source = LUA % ("tool:completed", "return {result = event.result .. #event.payload.result}")
    outcome = dispatched(tmp_path, source, ToolCompleted("bash", {}, "y" * 100_000, "c"))[0]
    assert outcome.payload.result == "y" * 100_000 + "100000"


@pytest.mark.parametrize(
    "source",
    [
        LUA % ("message:before_send", "return nil, event.model"),
        PYTHON % ("event['model']", "message:before_send"),
    ],
    ids=["lua", "python"],
)
def test_messages_that_nobody_reads_cost_next_to_nothing(tmp_path: Path, source: str) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "many").mkdir()
    _, _, without = dispatched(tmp_path / "none", source, MessageBeforeSend("m", {}, ()), 200)
    _, _, many = dispatched(tmp_path / "many", source, MessageBeforeSend("m", {}, MESSAGES), 200)
    assert many < 2 * without  # made eagerly they cost 50 times as much
