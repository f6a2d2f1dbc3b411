"""What an agent hears of a task that ended in the background."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cru.events.answers import Inject
from cru.tasks.record import TaskKind, TaskRecord, TaskStatus

RESULT = "result.md"
_ENDED = {
    TaskStatus.COMPLETED: "is done",
    TaskStatus.FAILED: "failed",
    TaskStatus.CANCELLED: "was cancelled",
}


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
        what = f"sub-agent {record.agent}" if record.kind is TaskKind.SUBAGENT else "command"
        end = _ENDED.get(record.status, record.status.value)
        is_command = record.kind is TaskKind.COMMAND
        why = f": {record.error}" if is_command and record.error else ""
        lines = [f"[background task {record.id} ({what}: {record.title[:200]}) {end}{why}]"]
        if record.error and not is_command:
            lines.append(record.error)
        if self.text:
            lines.append(cut_text(self.text, limit, self.folder))
        return "\n".join(lines)


def cut_text(text: str, limit: int, folder: Path) -> str:
    """At most so many characters; the whole is put into a file then, which the text names."""
    if len(text) <= limit:
        return text
    from cru.files.atomic import replace_file

    try:
        replace_file(folder / RESULT, text.encode("utf-8", "replace"), sync=False)
        where = f"all {len(text)} characters are in {folder / RESULT}"
    except OSError as error:
        where = f"{len(text)} characters; the rest is lost: {error.strerror}"
    return f"{text[:limit]}\n[… cut here: {where}]"
