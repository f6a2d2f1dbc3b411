"""Commands that have outlived the session that started them: they are ended from outside."""

from __future__ import annotations

import time
from pathlib import Path

from cru.core.agents import TaskError
from cru.core.agents.record import CancelledBy, TaskRecord, TaskStatus, write_record
from cru.core.base.process.identity import end_process


def end_detached(folder: Path, record: TaskRecord) -> None:
    """End it with all that it started, and write that down. Raises TaskError if it is gone, OSError."""
    if not (record.detached and record.pid and end_process(record.pid, record.identity)):
        raise TaskError(f"the command of task {record.id} runs no more")
    record.status, record.ended, record.cancelled_by = TaskStatus.CANCELLED, time.time(), CancelledBy.PERSON
    write_record(folder, record)
