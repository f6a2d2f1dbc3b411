"""A run of a task whose conversation is in the database, too: brought before, copied at each step, and once more at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from cru.core.conversations import ContextError, ContextHeld
from cru.features.fleet import FleetError, QueueUnavailable
from cru.features.fleet.context_copy import ContextCopy, CopyRefused, Restored
from cru.features.fleet.copy_server import VARIABLE, serve_copies
from cru.features.fleet.database import Database
from cru.features.fleet.records import QueuedTask, WorkResult, WorkStatus
from cru.features.fleet.run_task import RunEnd, RunSettings, TaskRun

CallQueue = Callable[..., Awaitable[Any]]
"""(function, arguments): calls it in the thread of the queue, again while the database is gone."""


async def run_shared(
    task: QueuedTask, run: TaskRun, worker: int, database: Database, settings: RunSettings, call: CallQueue
) -> RunEnd:
    """Raises QueueUnavailable, once the worker is to end."""
    copy = ContextCopy(database, settings.home / "contexts" / task.item.context)
    try:
        outcome = await call(copy.restore)
    except ContextHeld:
        return RunEnd(is_held=True)
    except QueueUnavailable:
        raise
    except (ContextError, FleetError, OSError) as error:
        return _failed(task, f"its conversation cannot be brought here: {error}")

    async def copy_now() -> bool:
        try:
            await call(copy.copy, task, worker)
        except (FleetError, OSError):
            return False
        return True

    async with serve_copies(settings.home / "fleet" / "sockets", copy_now) as socket:
        end = await run.run({VARIABLE: socket})
    try:
        await call(copy.copy, task, worker, True)
    except CopyRefused:
        pass  # its result is refused, too
    except OSError as error:
        return _failed(task, f"its conversation cannot be copied: {error}")
    if outcome is Restored.DIVERGED and end.result is not None:
        notice = (
            f"{task.item.context}: what only {settings.home} had is set aside, in context.jsonl.diverged of its folder"
        )
        return RunEnd(replace(end.result, notices=(notice, *end.result.notices)))
    return end


def _failed(task: QueuedTask, error: str) -> RunEnd:
    context = task.item.context
    resume = f"cru -C {context} --resume"
    return RunEnd(WorkResult(WorkStatus.FAILED, code=1, error=error, context=context, resume=resume))
