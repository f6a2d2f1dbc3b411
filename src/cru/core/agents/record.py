"""What is known of a task, in memory and as `tasks/ID/task.json` in the context's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cru.core.agents import FOLDER, TaskError
from cru.core.base.files import read_json
from cru.core.base.files.atomic import replace_file
from cru.core.base.process.marks import process_identity
from cru.core.turn.spending import UsageTotals

RECORD = "task.json"
PATCH = "changes.patch"
"""What a sub-agent changed in its worktree."""
VERSION = 1
MAIN = "main"
_Name = Annotated[str, Meta(pattern=r"^[^/.\x00][^/\x00]*$")]
"""Of a folder beside others."""
_Path = Annotated[str, Meta(pattern=r"^[^\x00]*$")]
_Commit = Annotated[str, Meta(pattern=r"^[0-9a-f]+$")]


class TaskKind(StrEnum):
    SUBAGENT = "subagent"
    COMMAND = "bash"


class TaskStatus(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def has_ended(self) -> bool:
        return self not in (TaskStatus.WAITING, TaskStatus.RUNNING)


class CancelledBy(StrEnum):
    """Who ended a task before its work was done, or what did."""

    PERSON = "person"
    AGENT = "agent"
    PLUGIN = "plugin"
    TURN = "turn"
    PARENT = "parent"
    SESSION = "session"

    def describe(self) -> str:
        """In words, after `was cancelled`."""
        return _IN_WORDS[self]


_IN_WORDS = {
    CancelledBy.PERSON: "by a person",
    CancelledBy.AGENT: "by the agent that started it",
    CancelledBy.PLUGIN: "by a plugin",
    CancelledBy.TURN: "with the turn that waited for it",
    CancelledBy.PARENT: "with the agent that started it",
    CancelledBy.SESSION: "with the session",
}


_CUT_OFF = (CancelledBy.TURN, CancelledBy.PARENT, CancelledBy.SESSION)


class WorktreeRecord(Struct, frozen=True):
    """A git worktree as it is written down before it is made, so that it is found after a kill.

    path: its folder
    project: the project root, in the repository's working tree that it belongs to
    base: the commit that it began with
    is_behind: the project had changes that are not committed, and so not in it
    is_ready: all of it is there, so that what differs is the sub-agent's work
    is_finished: its changes are kept, and nothing is left to do
    inner: the project's place in the working tree, "" if it is all of it
    """

    path: _Path
    project: _Path
    base: _Commit
    is_behind: bool = False
    is_ready: bool = False
    is_finished: bool = False
    inner: str = ""


class TaskRecord(Struct, kw_only=True):
    """One task. Times are Unix seconds, 0: not yet.

    prompt: what the sub-agent is asked, or the command
    agent: the name of its card
    model: as it was asked for, "": that of the parent
    parent: the task whose agent started it, "main" for the main agent
    turn: of the main agent, in which it, or the agent above it, was started
    call_id: the model's call that started it, "" if a script did
    depth: of the agent that runs in it; a command has that of the agent that started it
    background: nobody waits for it
    result, error: what came of it, in its first characters
    exit_status: of a command
    cancelled_by: who ended it, None: nobody
    owner: the process that runs it
    owner_identity: what only that process has, "" in records of older versions
    pid: of a command
    detached: it goes on when its owner has ended
    identity: what only that process has, if it is detached
    mark: what all that it starts carries (cru.core.base.process.marks), if it is not; "" in records of older versions
    rounds: requests of the conversation
    usage: what its own requests have used so far, those of agents below it not included
    worktree: where a sub-agent works, or worked, if that is not the project
    """

    id: str
    kind: TaskKind
    prompt: str
    description: str = ""
    agent: str = ""
    model: str = ""
    parent: _Name = MAIN
    turn: str = ""
    call_id: str = ""
    depth: int = 0
    background: bool = False
    status: TaskStatus = TaskStatus.WAITING
    created: float = 0
    started: float = 0
    ended: float = 0
    result: str = ""
    error: str = ""
    exit_status: int | None = None
    cancelled_by: CancelledBy | None = None
    owner: int = 0
    owner_identity: str = ""
    pid: int = 0
    detached: bool = False
    identity: str = ""
    mark: str = ""
    rounds: int = 0
    usage: UsageTotals = UsageTotals()
    worktree: WorktreeRecord | None = None
    version: int = VERSION

    @property
    def is_cut_off(self) -> bool:
        """Whether its agent waited for it and was interrupted itself, so that it has heard of nothing."""
        return (
            self.kind is TaskKind.SUBAGENT
            and self.status is TaskStatus.CANCELLED
            and not self.background
            and self.cancelled_by in _CUT_OFF
        )

    @property
    def title(self) -> str:
        """What it is called in lists."""
        return " ".join((self.description or self.prompt).split())


def write_record(folder: Path, record: TaskRecord) -> None:
    """Raises OSError."""
    replace_file(folder / RECORD, msgspec.json.encode(record), keep_mode=False, make_folders=True)


class BadRecord(TaskError):
    """What is in its file is no record of a task."""


def read_record(folder: Path) -> TaskRecord | None:
    """None if it is gone or cannot be read. A task whose process is gone is lost."""
    try:
        return load_record(folder)
    except (OSError, BadRecord):
        return None


def load_record(folder: Path) -> TaskRecord:
    """The same. Raises BadRecord, OSError."""
    try:
        record = read_json(folder / RECORD, TaskRecord)
    except msgspec.DecodeError as error:
        raise BadRecord(f"{folder / RECORD} is no record of a task: {error}") from error
    record.id = folder.name  # whatever the file says: it may be a copy
    if not record.status.has_ended and not _is_running(record):
        record.status = TaskStatus.LOST
    return record


def read_records(context: Path) -> Iterator[TaskRecord]:
    """The tasks of a context, the oldest first."""
    try:
        folders = sorted(entry.path for entry in os.scandir(context / FOLDER) if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return
    records = [record for folder in folders if (record := read_record(Path(folder))) is not None]
    yield from sorted(records, key=lambda record: record.created)


def _is_running(record: TaskRecord) -> bool:
    if not (record.detached and record.pid):
        return is_owner_alive(record)
    return process_identity(record.pid) == record.identity


def is_owner_alive(record: TaskRecord) -> bool:
    """Whether the process that ran it is there yet; one that got the same number later is not taken for it."""
    if not record.owner_identity:  # of an older version
        return _is_alive(record.owner)
    return process_identity(record.owner) == record.owner_identity


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except OverflowError:  # no process has such a number
        return False
    return True
