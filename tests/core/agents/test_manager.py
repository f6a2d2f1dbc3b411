"""The manager of tasks: no end of one is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.agents.support import ClosedWorld, call, script
from tests.core.turn.support import Ext

from cru.core.agents.sub_agents import AgentTasks
from cru.core.events.payloads import TaskFailed
from cru.core.events.stamp import Event


def test_an_agent_hears_of_a_cancelled_task_whose_end_takes_a_handler_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cru.core.agents.manager.GRACE", 0.2)

    async def never_ready(event: Event[TaskFailed]) -> None:
        await asyncio.Event().wait()

    child = script(tmp_path, "child", "delay: 600s\n")
    calls = f"{call('general', child, background=True)}\n---\ntext: started\n"
    world = ClosedWorld(tmp_path, calls, Ext({"task:failed": never_ready}))

    async def cancelled() -> str:
        world.session.submit("go")
        await world.session.run()
        work = world.session.parts.services.tasks.background
        assert isinstance(work, AgentTasks)
        (task,) = work.manager.tasks.values()
        await work.manager.cancel(task)
        report = work.take_report()
        await world.session.close()
        return report

    assert "was cancelled" in asyncio.run(cancelled())
