"""Many prompts as durable work: a queue in a database, workers that start a run of cru for each task, batches (docs/batch.md).

What can go wrong with it.

FleetError
├── QueueUnavailable   the database cannot be reached; may pass
├── BadItems           lines of a file that are no items (exit 2)
├── ItemChanged        an item is not what was queued under its id (exit 2)
├── UnreadableTask     a row of the queue cannot be read; its task has failed
└── WorkerReplaced     others took this worker for dead, and have its tasks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.base.values.errors import CruError

if TYPE_CHECKING:
    from cru.features.fleet.records import QueuedTask


class FleetError(CruError):
    pass


class QueueUnavailable(FleetError):
    pass


class BadItems(FleetError):
    code = 2


class ItemChanged(FleetError):
    code = 2


class UnreadableTask(FleetError):
    """task: all that is known of it."""

    def __init__(self, message: str, hint: str, task: QueuedTask) -> None:
        super().__init__(message, hint)
        self.task = task


class WorkerReplaced(FleetError):
    pass
