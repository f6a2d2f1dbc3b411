"""What a killed run has left of its tasks: found when the context is used again, kept, and told once, to the person and to the model."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from cru.core.agents import FOLDER, TaskError
from cru.core.agents.command_run import describe_output
from cru.core.agents.completion import RESULT, cut_text, describe_end, name_task
from cru.core.agents.record import (
    MAIN,
    BadRecord,
    TaskKind,
    TaskRecord,
    TaskStatus,
    is_owner_alive,
    load_record,
    write_record,
)
from cru.core.agents.untold import ToldEnds, clear_old, clear_untold, untold_tasks
from cru.core.agents.worktree import Worktree
from cru.core.base.files.regular import read_regular
from cru.core.base.process.left_running import end_marked
from cru.core.base.process.marks import is_given_by, is_of_this_boot
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import MESSAGE
from cru.core.conversations.entries import LOG
from cru.core.conversations.log_tail import read_tail
from cru.core.turn.parts import Parts
from cru.core.turn.turn import TaskReport

LAST_WORDS = 2000
"""Characters."""


class LeftTask(Struct, frozen=True):
    """A task of a process that is gone.

    folder: its files
    changes: of its worktree, in words
    """

    record: TaskRecord
    folder: Path
    changes: str = ""


class TaskRecovery:
    """Of one context. It is called while the context's lock is held, so that nobody else does the same; it tells a task once."""

    def __init__(self, parts: Parts, limit: int) -> None:
        self._parts = parts
        self._limit = limit
        self._seen: set[str] = set()
        self._told: dict[Path, ToldEnds] = {}
        self._warned: set[str] = set()

    async def __call__(self) -> TaskReport | None:
        """What the model has to hear, None: nothing. Whoever gets it puts it into the log."""
        parts = self._parts
        left: list[LeftTask] = []
        self._told.clear()
        try:
            untold = untold_tasks(parts.store.folder)
        except OSError as error:
            untold = []
            self._warn(f"what became of tasks of an earlier run is not known: {error}")
        for task_id in untold:
            if task_id in self._seen:
                continue
            try:
                task = await self._look(task_id)
            except (OSError, CruError) as error:
                self._warn(f"what became of task {task_id} of an earlier run is not known: {error}")
                continue
            left += [task] if task is not None else []
        left.sort(key=lambda task: task.record.created)
        for task in left:
            record = task.record
            self._seen.add(record.id)
            more = f" ({record.error})" if record.status is TaskStatus.LOST and record.error else ""
            parts.bus.stream.warn(
                f"{name_task(record)} {describe_end(record)}{more}: `cru tasks show {record.id}`; the model is told"
            )
        texts = [_describe(task, self._limit) for task in left]
        return TaskReport("\n\n".join(texts), tuple(task.record.id for task in left)) if left else None

    async def _look(self, task_id: str) -> LeftTask | None:
        """A task that its agent has not heard of, and its process cannot tell; what is left of it is kept. Raises OSError, CruError."""
        context = self._parts.store.folder
        folder = context / FOLDER / task_id
        try:
            record = load_record(folder)
        except (FileNotFoundError, NotADirectoryError):
            clear_old(context, task_id)
            return None
        except BadRecord as error:
            self._warn(f"what became of task {task_id} is not known, and its files were left as they are: {error}")
            clear_untold(context, task_id)
            return None
        if is_owner_alive(record) and not (record.owner == os.getpid() and record.is_cut_off):
            if record.owner == os.getpid():
                self._seen.add(task_id)  # its session tells it
            return None
        if not record.status.has_ended:
            return None
        await _end_left(record)
        changes = await self._keep_changes(folder, record)
        conversation = context if record.parent == MAIN else context / FOLDER / record.parent
        ends = self._told.setdefault(conversation, ToldEnds(conversation))
        if ends.has(record):
            clear_untold(context, task_id)
            return None
        for problem in ends.problems:
            self._warn(problem)
        write_record(folder, record)  # from now on it is lost for certain
        return LeftTask(record, folder, changes)

    def _warn(self, text: str) -> None:
        """Once."""
        if text not in self._warned:
            self._warned.add(text)
            self._parts.bus.stream.warn(text)

    async def _keep_changes(self, folder: Path, record: TaskRecord) -> str:
        """Of its worktree, which goes; a kill in the middle does no harm."""
        if record.worktree is None or record.worktree.is_finished:
            return ""
        env = self._parts.tool_services.commands.env_of_own_programs(self._parts.place.root, self._parts.place.env)
        tree = Worktree.of_record(record.worktree, folder, env)
        if not tree.is_ours(record.id):
            return f"[{tree.path}, which its record names, is no worktree of cru's and was left alone]"
        try:
            return await tree.recover(record.worktree.is_ready)
        except TaskError as error:
            return f"[its worktree {tree.path} may be left: {error.message}]"


async def _end_left(record: TaskRecord) -> None:
    """A command that outlived not only cru but also what ends commands then."""
    if record.status is not TaskStatus.LOST or not record.mark:
        return
    if not (is_given_by(record.mark, record.owner) and is_of_this_boot(record.owner_identity)):
        return
    ended = await end_marked(record.mark)
    if ended.names:
        what = "was ended now" if ended.is_over else "does not end"
        record.error = f"what it had started ran on, and {what}: {', '.join(ended.names[:20])}"


def _describe(task: LeftTask, limit: int) -> str:
    """For the model."""
    record, folder = task.record, task.folder
    lines = [f"[{name_task(record)} {describe_end(record)}]", record.error]
    if record.kind is TaskKind.COMMAND:
        lines.append(describe_output(folder))
    elif record.status is TaskStatus.LOST:
        lines += _traces(folder) if record.started else []
    else:
        lines.append(cut_text(_whole_result(folder, record), limit, folder))
        lines += [_whole_log(folder)] if record.is_cut_off and record.started else []
    return "\n".join(filter(None, [*lines, task.changes]))


def _traces(folder: Path) -> list[str]:
    """Of an agent that came to no end: what it said last, and where all of it is."""
    entries = read_tail(folder / LOG, 1, (MESSAGE,)).entries
    words = next((entry.content for entry in reversed(entries) if entry.role in ("agent", "assistant")), "")
    last = f"its last words: {words[:LAST_WORDS]}{'…' if len(words) > LAST_WORDS else ''}" if words else ""
    return [last, _whole_log(folder)]


def _whole_log(folder: Path) -> str:
    return f"[what it said and did until then is in {folder / LOG}]"


def _whole_result(folder: Path, record: TaskRecord) -> str:
    try:
        return read_regular(folder / RESULT).decode("utf-8", "replace")
    except OSError:
        return record.result
