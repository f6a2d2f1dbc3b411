"""Many prompts as durable work: a queue in a database, workers that start a run of cru for each task, batches (docs/batch.md).

What can go wrong with it.

FleetError
├── QueueUnavailable   the database cannot be reached, is locked, full or not ours; may pass
├── QueueTooNew        a newer cru made it
├── BadItems           lines of a file that are no items (exit 2)
├── ItemChanged        an item is not what was queued under its id (exit 2)
├── UnreadableTask     a row of the queue cannot be read; its task has failed
├── HomeCopied         another home has the same id
└── WorkerReplaced     others took this worker for dead, and have its tasks
"""

from __future__ import annotations

from cru.core.base.values.errors import CruError


class FleetError(CruError):
    pass


class QueueUnavailable(FleetError):
    pass


class QueueTooNew(FleetError):
    pass


class BadItems(FleetError):
    code = 2


class ItemChanged(FleetError):
    code = 2


class UnreadableTask(FleetError):
    pass


class HomeCopied(FleetError):
    pass


class WorkerReplaced(FleetError):
    pass
