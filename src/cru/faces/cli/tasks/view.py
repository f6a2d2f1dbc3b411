"""One task for a person: its facts, then what it said and did, as it comes if wanted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from cru.core.agents.output import FIRST, output_end, read_output
from cru.core.agents.record import PATCH, TaskKind, TaskRecord, TaskStatus
from cru.core.agents.usage import below, read_usages, sum_usages
from cru.core.base.values.messages import MESSAGE, TOOL_CALL, TOOL_RESULT, Entry
from cru.core.records.usage import describe_cost, describe_tokens
from cru.core.turn.spending import UsageTotals
from cru.faces.cli.console import one_line, printable, show

LOOK = 0.2
"""Seconds between two looks at a file that grows."""
COLUMNS = 160
SHOWN = 64 * 1024
"""Bytes of a command's output that are shown of what is there already."""


def show_task(folder: Path, record: TaskRecord) -> int:
    """Everything that is known; exit status 0."""
    _show_facts(record)
    _reader(folder, record).show_new(is_last=True)
    _show_end(folder, record)
    return 0


def follow_task(folder: Path, now: Callable[[], TaskRecord]) -> int:
    """Until it ends; the exit status is 0 if it ended well."""
    record = now()
    _show_facts(record)
    follower = _reader(folder, record)
    while not record.status.has_ended:
        follower.show_new(is_last=False)
        time.sleep(LOOK)
        record = now()
    follower.show_new(is_last=True)
    _show_end(folder, record)
    return 0 if record.status is TaskStatus.COMPLETED else 1


def _show_facts(record: TaskRecord) -> None:
    what = f"sub-agent {one_line(record.agent)}" if record.kind is TaskKind.SUBAGENT else "command"
    show(f"task {record.id}: {what}, {record.status.value}, started by {one_line(record.parent)}")
    show(f"  asked   {one_line(record.prompt, COLUMNS)}")
    if record.model:
        show(f"  model   {one_line(record.model)}")
    if record.worktree is not None:
        gone = "" if os.path.isdir(record.worktree.path) else ", which is gone"
        show(f"  in      {one_line(record.worktree.path)} (a git worktree{gone})")
    show("")


def _show_end(folder: Path, record: TaskRecord) -> None:
    """How it ended, and what it has used so far."""
    if record.status.has_ended:
        by = f" {record.cancelled_by.describe()}" if record.cancelled_by is not None else ""
        show(f"\n{record.status.value}{by}" + (f": {printable(record.error)}" if record.error else ""))
    if os.path.isfile(folder / PATCH):
        place = " at the top of the repository" if record.worktree is not None and record.worktree.inner else ""
        show(f"changes  {one_line(str(folder / PATCH))} (`git apply`{place} takes them over)")
    _show_usage(folder, record)
    if record.exit_status is not None and not record.error:
        show(f"exit code {record.exit_status}")


def _show_usage(folder: Path, record: TaskRecord) -> None:
    usages = read_usages(folder.parent.parent)
    own = sum_usages(usage for usage in usages if usage.record.id == record.id)
    if own.requests:
        show(f"used     {_describe_totals(own)}")
    agents = below(usages, record.id)
    if agents:
        show(f"below it {_describe_totals(sum_usages(agents))} (of {len(agents)})")


def _describe_totals(totals: UsageTotals) -> str:
    requests = f"{totals.requests} request{'' if totals.requests == 1 else 's'}"
    return f"{requests}, {describe_tokens(totals)}, {describe_cost(totals)}"


class _LogReader:
    """Shows what a sub-agent has said and done since the last look."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "context.jsonl"
        self._at = 0
        self._rest = b""

    def show_new(self, *, is_last: bool) -> None:
        try:
            with open(self._file, "rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if text := _entry_text(line):
                show(text)


class _OutputReader:
    """Shows the whole lines that a command has printed since the last look; of what is there already the last ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at = max(0, output_end(folder) - SHOWN)
        self._rest = f"[… {self._at:,} bytes before this are in {folder / FIRST}]\n" if self._at else ""

    def show_new(self, *, is_last: bool) -> None:
        while True:
            page = read_output(self._folder, self._at, SHOWN, whole=is_last)
            if page.offset == self._at:
                break
            self._at = page.offset
            lines, newline, self._rest = (self._rest + page.text).rpartition("\n")
            if newline:
                show(printable(lines))
        if is_last and self._rest:
            show(printable(self._rest))


def _reader(folder: Path, record: TaskRecord) -> _LogReader | _OutputReader:
    return _LogReader(folder) if record.kind is TaskKind.SUBAGENT else _OutputReader(folder)


def _entry_text(line: bytes) -> str:
    """A line of a log for a person, "" for what is no message and no call."""
    try:
        entry = msgspec.json.decode(line, type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if entry.entry_type == MESSAGE:
        return ("" if entry.role in ("agent", "assistant") else "> ") + printable(entry.content)
    if entry.entry_type == TOOL_CALL:
        return f"[{entry.to} {one_line(entry.content, COLUMNS)}]"
    if entry.entry_type == TOOL_RESULT:
        return f"  {one_line(entry.content, COLUMNS)}"
    return ""
