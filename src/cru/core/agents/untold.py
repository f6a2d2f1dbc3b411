"""Which ends of tasks a model has not heard of: an empty file `tasks/untold/ID` each.

A file is there from before its task begins until the log of the conversation has its end; one that is left over is looked into at the next
start (recovery.py). So no kill loses an end, and a start that has nothing to tell costs one look.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.agents import FOLDER, UNTOLD
from cru.core.agents.record import TaskRecord, TaskStatus
from cru.core.base.files.regular import PRIVATE, make_private_folder
from cru.core.base.values.messages import TOOL_RESULT, Entry
from cru.core.conversations.entries import ARCHIVE, LOG
from cru.core.conversations.log_tail import newest_entries
from cru.core.events.payloads import FailureKind

BEGINNING = 60.0
"""Seconds after which a task that was to begin has a record."""


def mark_untold(context: Path, task_id: str) -> None:
    """Raises OSError."""
    folder = context / FOLDER / UNTOLD
    make_private_folder(folder)
    os.close(os.open(folder / task_id, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE))


def clear_untold(context: Path, task_id: str) -> None:
    """Raises OSError."""
    (context / FOLDER / UNTOLD / task_id).unlink(missing_ok=True)


def clear_old(context: Path, task_id: str) -> None:
    """The same for one that has no record, if its task cannot be about to begin. Raises OSError."""
    path = context / FOLDER / UNTOLD / task_id
    if time.time() - path.stat().st_mtime > BEGINNING:
        path.unlink(missing_ok=True)


def untold_tasks(context: Path) -> list[str]:
    """Their ids. Raises OSError."""
    try:
        return sorted(os.listdir(context / FOLDER / UNTOLD))
    except FileNotFoundError:
        return []


class _Report(Struct):
    """The metadata of an entry that tells the ends of tasks: their ids."""

    tasks: tuple[str, ...] = ()


class ToldEnds:
    """What the log in a folder, of the agent that started tasks, has of their ends; it is read once, when something is first asked.
    problems: what was passed over, and may have told one"""

    def __init__(self, conversation: Path) -> None:
        self.problems: list[str] = []
        self._conversation = conversation
        self._reports: dict[str, int] | None = None

    def has(self, record: TaskRecord) -> bool:
        """As a message, or as the result of the call. What was told before a task went on says nothing. Raises StoreUnreadable."""
        if not record.background and not record.call_id and record.status is not TaskStatus.LOST:
            return True  # a script or a person has waited for it
        if self._reports is None:
            self._reports = self._read_reports()
        if self._reports.get(record.id, 0) >= int(record.created):
            return True
        return not record.background and any(_is_answer(entry, record) for entry in self._entries(record.call_id))

    def _read_reports(self) -> dict[str, int]:
        """By the ids of tasks, when their ends were told last."""
        reports: dict[str, int] = {}
        for entry in self._entries('"tasks"'):
            try:
                report = msgspec.convert(entry.metadata, _Report)
            except msgspec.ValidationError as error:
                self.problems.append(
                    f"entry {entry.id} in {self._conversation} names no tasks, and was passed over: {error}"
                )
                continue
            for task_id in report.tasks:
                reports[task_id] = max(entry.timestamp, reports.get(task_id, 0))
        return reports

    def _entries(self, part: str) -> Iterator[Entry]:
        """Those in whose lines this stands, the newest first."""
        for name in (LOG, ARCHIVE) if part else ():
            yield from newest_entries(self._conversation / name, [], part.encode())


def _is_answer(entry: Entry, record: TaskRecord) -> bool:
    """Whether this is what came of the call that waited for it. A call that was cut short has none, unless its task was, too."""
    if entry.entry_type != TOOL_RESULT or entry.tool_call_id != record.call_id or entry.timestamp < int(record.created):
        return False
    is_cut = entry.metadata.get("which") == FailureKind.INTERRUPTED.value
    return not is_cut or (record.status is TaskStatus.CANCELLED and not record.is_cut_off)
