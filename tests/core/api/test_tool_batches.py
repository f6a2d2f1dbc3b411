from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.core.turn.support import MadeTool

from cru.core.api import tools
from cru.core.events.answers import Answer, cancel
from cru.core.events.stamp import Event
from cru.core.tools.protocol import ToolResult


def test_a_batch_runs_together_and_answers_in_order(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.world.tools(
        MadeTool("a", lambda args: f"a{args['n']}"), MadeTool("b", lambda _args: ToolResult("bad", is_error=True))
    )
    found, error = room(tools.batch, [{"tool": "a", "args": {"n": 1}}, {"tool": "b"}, {"tool": "a", "args": {"n": 2}}])
    assert found == [{"result": "a1"}, {"err": "bad"}, {"result": "a2"}]
    assert error is None
    assert room(tools.batch, [{"args": {}}])[0] is None
    assert room(tools.batch, {}) == ([], None)


@pytest.mark.parametrize("shared", [True, False])
def test_a_guard_knows_what_the_calls_before_it_in_a_batch_did(tmp_path: Path, shared: bool) -> None:
    """Calls that may change something are decided one after another, as those of a reply are."""
    room = Room(tmp_path)
    deployed: list[int] = []

    async def guard(_event: Event) -> Answer | None:
        answer = cancel("one deploy only") if deployed else None
        await asyncio.sleep(0)  # as a hook that is a process: other calls get on meanwhile
        return answer

    room.parts.bus.registry.on("tool:before_call", guard, owner="guard")

    def deploy(args: dict[str, Any]) -> str:
        deployed.append(args["n"])
        return "done"

    room.world.tools(MadeTool("deploy", deploy, parallel=shared))
    found, _ = room(tools.batch, [{"tool": "deploy", "args": {"n": n}} for n in (1, 2)])
    assert deployed == ([1, 2] if shared else [1])
    assert shared or "one deploy only" in found[1]["err"]
