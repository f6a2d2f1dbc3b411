"""What one call of a handler in Python takes: functions that are called, and copies of what the event holds."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest
from tests.core.turn.support import World

from cru.core.events.payloads import ToolBeforeCall

TIMES = 50
CALL = ToolBeforeCall("bash", {"command": "x" * 900, "timeout": 30, "description": "a call of one kilobyte"}, "call_1")
READS = "event['args']['command']"
CHANGES = "event['args']['command'] += 'y'; return event"


def called(tmp_path: Path, body: str) -> Counter[str]:
    """How often each function written in Python is called in a dispatch."""
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    source = f"from cru import on\ndef handler(ctx, event):\n    {body}\non('tool:before_call', handler)\n"
    (plugins / "demo.py").write_text(source)
    world, counts = World(tmp_path, "text: fine\n"), Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            counts[frame.f_code.co_qualname] += 1

    async def main() -> None:
        await world.asked("hi")
        bus = world.session.parts.bus
        await bus.dispatch(CALL)
        sys.setprofile(count)
        try:
            for _ in range(TIMES):
                await bus.dispatch(CALL)
        finally:
            sys.setprofile(None)

    asyncio.run(main())
    return counts


@pytest.mark.parametrize(("body", "most"), [(READS, 54), (CHANGES, 80)], ids=["reads", "changes"])
def test_a_call_takes_few_functions(tmp_path: Path, body: str, most: int) -> None:
    counts = called(tmp_path, body)
    assert counts["handler"] == TIMES
    assert counts.total() <= most * TIMES, counts.most_common()


def test_only_what_is_read_is_copied(tmp_path: Path) -> None:
    counts = called(tmp_path, READS)
    assert (counts["_copy"], counts["_summary"], counts["_plain_fields"]) == (TIMES, 0, 0)
