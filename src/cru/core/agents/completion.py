"""What an agent hears of a task that ended, and who has not heard of which."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cru.core.agents.record import TaskKind, TaskRecord, TaskStatus
from cru.core.base.files.atomic import replace_file
from cru.core.events.answers import Inject

RESULT = "result.md"
SHORT = 2000
"""Characters of a result that its record has; a longer one is in RESULT beside it."""


class Completion(Struct, frozen=True):
    """A task that ended and that its agent has not heard of yet.

    text: the result, "": the agent has had it
    injects: what handlers of its end want said
    """

    record: TaskRecord
    text: str
    folder: Path
    injects: tuple[Inject, ...] = ()

    def describe(self, limit: int) -> str:
        """For the model, with at most so many characters of the result."""
        texts = [inject.content for inject in self.injects]
        if self.record.background:
            texts.insert(0, self._report(limit))
        return "\n\n".join(texts)

    def _report(self, limit: int) -> str:
        record = self.record
        is_command = record.kind is TaskKind.COMMAND
        why = f": {record.error}" if is_command and record.error else ""
        lines = [f"[{name_task(record)} {describe_end(record)}{why}]"]
        if record.error and not is_command:
            lines.append(record.error)
        if self.text:
            lines.append(cut_text(self.text, limit, self.folder))
        return "\n".join(lines)


class Completions:
    """Those of a session's tasks that their agents have not heard of."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Completion]] = {}
        self._heard: set[str] = set()

    def keep(self, completion: Completion) -> None:
        """Unless its agent knows of the end, and no handler wants anything said."""
        record = completion.record
        if completion.injects or (record.background and record.id not in self._heard):
            self._waiting.setdefault(record.parent, []).append(completion)

    def forget(self, record: TaskRecord) -> None:
        """Its agent knows already how it ended; what handlers want said of that is said all the same."""
        self._heard.add(record.id)
        waiting = self._waiting.get(record.parent, [])
        self._waiting[record.parent] = [c for c in waiting if c.record.id != record.id or c.injects]

    def is_heard(self, task_id: str) -> bool:
        return task_id in self._heard

    def take(self, agent_id: str) -> list[Completion]:
        """What ended since the last call and this agent has not heard of."""
        return self._waiting.pop(agent_id, [])

    def has_any(self, agent_id: str) -> bool:
        return bool(self._waiting.get(agent_id))


def name_task(record: TaskRecord) -> str:
    """What the model calls it."""
    what = f"sub-agent {record.agent}" if record.kind is TaskKind.SUBAGENT else "command"
    return f"{'background ' if record.background else ''}task {record.id} ({what}: {record.title[:200]})"


def describe_end(record: TaskRecord) -> str:
    """How it ended, after its name."""
    if record.status is TaskStatus.CANCELLED:
        by = record.cancelled_by
        return f"was cancelled {by.describe()}" if by is not None else "was cancelled"
    if record.status is TaskStatus.LOST:
        return _describe_loss(record)
    return {TaskStatus.COMPLETED: "is done", TaskStatus.FAILED: "failed"}.get(record.status, record.status.value)


def _describe_loss(record: TaskRecord) -> str:
    if record.detached and record.pid:
        return "went on when cru had ended, and has ended since; how is not known"
    if not record.started:
        return "had not begun when cru was killed, and is lost"
    return "was running when cru was killed, and is lost"


def first_line(error: str) -> str:
    """Of what went wrong, for a list or a warning."""
    return next((line.strip() for line in error.splitlines() if line.strip()), "")


def save_result(text: str, folder: Path) -> None:
    """Keep a result that is too long for a record. Raises OSError."""
    replace_file(folder / RESULT, text.encode("utf-8", "replace"), make_folders=True)


def cut_text(text: str, limit: int, folder: Path) -> str:
    """At most so many characters; the whole is in a file then, which the text names."""
    if len(text) <= limit:
        return text
    path = folder / RESULT
    try:
        if not path.exists():
            save_result(text, folder)
        where = f"all {len(text)} characters are in {path}"
    except OSError as error:
        where = f"{len(text)} characters; the rest is lost: {error.strerror}"
    return f"{text[:limit]}\n[… cut here: {where}]"
