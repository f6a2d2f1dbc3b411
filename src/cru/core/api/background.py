"""`cru.background`: sub-agents that a script starts beside the conversation (docs/agents.md)."""

from __future__ import annotations

import asyncio
from functools import partial

from cru.core.agents.manager import Task
from cru.core.agents.record import CancelledBy, TaskRecord
from cru.core.agents.sub_agents import AgentTasks
from cru.core.api.agent_requests import agent_tasks, decide, make_request, tasks_of
from cru.core.api.arguments import function, options, table, text, texts
from cru.core.api.callbacks import Callback, bind_callback, report_failure
from cru.core.api.host import Values, host
from cru.core.base.values.errors import CruError

SECONDS = 60.0
"""For which a session waits for on_complete."""
_KNOWN = ("agent", "prompt", "description", "model", "tools", "isolation", "on_complete")


async def spawn(opts: dict[str, object] | None = None, **named: object) -> Values:
    """background.spawn{agent, prompt, description?, model?, tools?, isolation?, on_complete=fn(result)?} -> the id of the task, or
    (nil, message). A sub-agent works beside the conversation, under all rules; of its card's tools it has those that
    `tools` names, {} = none. When it has ended, on_complete gets {id, status, output,
    error}, status "completed", "failed" or "cancelled"; without on_complete the model gets the answer. Raises BadArgument.

    Example: cru.background.spawn({agent="nobody", prompt="x"}) --> nil
    """
    where = "cru.background.spawn"
    fields = options(where, {**table(where, "options", opts), **named}, _KNOWN)
    on_complete = fields.pop("on_complete", None)
    done = None if on_complete is None else bind_callback(function(where, "on_complete", on_complete)).detached()
    for name in ("agent", "prompt"):
        text(where, name, fields.get(name))
    if fields.get("tools") is not None:
        fields["tools"] = texts(where, "tools", fields["tools"])
    request = make_request(where, {**fields, "background": True})
    try:
        parts = host().parts
        tasks = agent_tasks(parts.tool_services)
        request = await decide(parts, request)
        task = await tasks.start_agent(tasks.cards().find(request.agent), request)
    except CruError as error:
        return Values((None, error.message))
    if done is not None:
        tasks.manager.forget(task)
        task.on_end = partial(_report, done)
    return Values((task.id, None))


async def _report(done: Callback, task: Task) -> None:
    outcome = task.outcome
    assert outcome is not None
    result = {
        "id": task.id, "status": task.record.status.value, "output": outcome.result, "error": outcome.error or None,
    }  # fmt: skip
    try:
        async with asyncio.timeout(SECONDS):
            await done.guarded("on_complete", result)
    except TimeoutError as error:
        report_failure(done.host, error, f"on_complete: it took longer than {SECONDS:g} s and was ended")


def list_() -> list[dict[str, object]]:
    """background.list() -> {{id, kind, status, agent, description, prompt, background}, ...}: the tasks of this session, the oldest first.

    Example: #cru.background.list() --> 0
    """
    tasks = host().session.parts.services.tasks.background
    return [_describe(task.record) for task in tasks.manager.tasks.values()] if isinstance(tasks, AgentTasks) else []


def get(task_id: str) -> dict[str, object] | None:
    """background.get(id) -> the same of one task, with output and error once it has ended; nil if there is none.

    Example: cru.background.get("none") --> nil
    """
    tasks = host().session.parts.services.tasks.background
    task = tasks.manager.tasks.get(task_id) if isinstance(tasks, AgentTasks) else None
    if task is None:
        return None
    ended = task.outcome if task.ended.is_set() else None
    return {**_describe(task.record), **({"output": ended.result, "error": ended.error or None} if ended else {})}


async def cancel(task_id: str) -> bool:
    """background.cancel(id) -> whether it ran; it is ended, with what it started.

    Example: cru.background.cancel("none") --> false
    """
    tasks = host().session.parts.services.tasks.background
    task = tasks.manager.tasks.get(task_id) if isinstance(tasks, AgentTasks) else None
    return task is not None and await tasks_of(tasks).manager.cancel(task, CancelledBy.PLUGIN)


def _describe(record: TaskRecord) -> dict[str, object]:
    return {
        "id": record.id, "kind": record.kind.value, "status": record.status.value, "agent": record.agent,
        "description": record.description, "prompt": record.prompt, "background": record.background,
    }  # fmt: skip
