"""What a batch shows: a line of progress on a terminal, a line an item elsewhere, a table at the end; with --json objects."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from cru.core.records.usage import describe_cost
from cru.core.turn.spending import UsageTotals
from cru.faces.cli.console import complain, one_line, show
from cru.faces.cli.fleet.common import Stoppable, count_items, say_line
from cru.faces.cli.terminal.progress import ProgressLine
from cru.features.fleet import FleetError
from cru.features.fleet.records import QueuedTask, TaskRow, WorkResult, WorkStatus
from cru.features.fleet.results import ResultFile

VERSION = 1
"""Of the lines of --json, as in `cru --json`."""
LOOK_SECONDS = 0.5
"""Between two lines of progress, and two looks for what workers finished."""
SHOWN_ROWS = 40
"""Rows of the table; of a longer one those that are not done come first."""
TOLD_NOTICES = 5
"""Of one item, on its line; the results have more of them."""


class BatchFace:
    """Hears of items as they end.

    ids: the items that this command is about
    known: those of them that are finished, and have been shown
    problem: why results could not be written, "" if they could
    """

    def __init__(self, name: str, ids: set[str], as_json: bool, out: ResultFile | None) -> None:
        self.ids = ids
        self.known: set[str] = set()
        self.problem = ""
        self._name, self._as_json, self._out = name, as_json, out
        self._progress = ProgressLine() if sys.stderr.isatty() and not as_json else None
        self._put_off: set[str] = set()
        self._statuses: Counter[WorkStatus] = Counter()
        self._usage, self._refused, self._before = UsageTotals(), 0, 0
        self._notices: tuple[str, ...] = ()
        self._told: set[str] = set()
        self._begin = time.monotonic()

    @property
    def left(self) -> int:
        return len(self.ids) - len(self.known)

    def begin(self, rows: Sequence[TaskRow], notices: Sequence[str]) -> None:
        """Say what there is to do. rows: of the batch, before anything is done; notices: what all runs would tell, told once, and
        in no item's result."""
        self._notices = tuple(notices)
        finished = [self._without_common(row) for row in rows if row.id in self.ids and row.result is not None]
        if self._out is not None:
            self._write(self._out.begin, finished)
        for row in finished:
            self._count(row)
        self._before = len(finished)
        if self._as_json:
            payload = {"name": self._name, "items": len(self.ids), "finished": len(finished)}
            self._line("batch", {**payload, **({"notices": self._notices} if self._notices else {})})
        else:
            done = f", {len(finished)} of them finished before" if finished else ""
            self.note(f"batch {self._name}: {count_items(len(self.ids))}{done}")
            for text in self._notices:
                self.note(text)

    async def watch(self, pool: Stoppable) -> None:
        """Show how far the items are, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.show(pool.running)

    def end(self, rows: Sequence[TaskRow], code: int, command: str) -> None:
        """The table, and what to do about items that are not done."""
        for row in rows:
            if row.result is not None:
                self.finished(row)
        if self._progress is not None:
            self._progress.clear()
        if self.problem:
            complain(self.problem)
        left = self.left
        counts = {status.value: count for status, count in self._statuses.items()}
        wrong = sum(count for status, count in self._statuses.items() if status is not WorkStatus.DONE)
        again = f"{command} --retry" if wrong else command if left else ""
        if self._as_json:
            payload = {
                "name": self._name,
                **counts,
                "left": left,
                "refused": self._refused,
                "tokens": self._usage.tokens,
                "cost": self._usage.cost,
                "unpriced": self._usage.unpriced,
                "estimated": self._usage.estimated,
                "again": again,
            }
            self._line("result", payload, code)
            return
        show(self._table(rows))
        if left:
            say_line(f"{count_items(left)} not finished; go on with: {command}")
        if wrong:
            say_line(f"{count_items(wrong)} not done; once more: {command} --retry")

    def note(self, text: str) -> None:
        if self._progress is not None:
            self._progress.clear()
        say_line(text)

    # what the pool tells ----------------------------------------------------------------------------------------------------------

    def started(self, task: QueuedTask) -> None:
        if self._as_json:
            self._line("item:started", {"id": task.id, "context": task.item.context, "deaths": task.deaths})

    def died(self, task: QueuedTask, why: str) -> None:
        self.note(f"{task.id} died: {why}")

    def put_off(self, task: QueuedTask) -> None:
        if task.key not in self._put_off:
            self._put_off.add(task.key)
            self.note(f"{task.id} waits: another run has the context {task.item.context}")

    def finished(self, row: TaskRow) -> None:
        """Show what came of an item, once."""
        if row.id in self.known:
            return
        if row.id not in self.ids:  # of a line that the file has no more
            self.known.add(row.id)
            self.ids = self.ids | {row.id}
        row = self._without_common(row)
        self._count(row)
        result = row.result
        assert result is not None
        if self._out is not None and not self.problem:
            self._write(self._out.add, row)
        if self._as_json:
            self._line("item:finished", {"id": row.id, "line": row.line, **msgspec.to_builtins(result)})
        elif self._progress is None:
            why = f": {one_line(result.error, 200)}" if result.error else ""
            say_line(
                f"{len(self.known)}/{len(self.ids)} {row.id} {result.status.value} after {result.seconds:.1f} s{why}"
            )
        if not self._as_json:
            self._tell_notices(row.id, result)

    def _tell_notices(self, item: str, result: WorkResult) -> None:
        """Say what `cru "prompt"` says on standard error, on one line an item."""
        new = result.notices
        if not new:
            return
        parts = [_describe_refused(result.refused)] if result.refused else []
        parts += [one_line(text, 200) for text in new[:TOLD_NOTICES]]
        parts += [f"{len(new) - TOLD_NOTICES} more"] if len(new) > TOLD_NOTICES else []
        self.note(f"{item}: {'; '.join(parts)}")

    def _without_common(self, row: TaskRow) -> TaskRow:
        """Return the row without notices that an earlier row has, unless they may say why a call was refused."""
        result = row.result
        if result is None or not result.notices:
            return row
        own = tuple(
            text
            for text in dict.fromkeys(result.notices)
            if text not in self._notices and (result.refused or text not in self._told)
        )
        self._told.update(own)
        return replace(row, result=replace(result, notices=own))

    def _count(self, row: TaskRow) -> None:
        assert row.result is not None
        self.known.add(row.id)
        self._statuses[row.result.status] += 1
        self._usage = self._usage.joined(row.result.tokens)
        self._refused += row.result.refused

    def _write(self, write: Callable[..., None], *rows: object) -> None:
        try:
            write(*rows)
        except FleetError as error:
            self.problem = f"{error.message}\n{error.hint}"
            self.note(error.message)

    def show(self, running: int) -> None:
        """Show how far the items are on a terminal."""
        if self._progress is None:
            return
        done = len(self.known) - self._before
        seconds = time.monotonic() - self._begin
        wrong = sum(count for status, count in self._statuses.items() if status is not WorkStatus.DONE)
        parts = [f"{len(self.known)}/{len(self.ids)}", f"{running} running", *([f"{wrong} not done"] if wrong else [])]
        if done:
            parts += [f"{done / seconds * 60:.1f}/min", f"{_duration(self.left * seconds / done)} left"]
        parts += [_describe_usage(self._usage)] if self._usage.tokens else []
        self._progress.show(" · ".join(parts))

    def _table(self, rows: Sequence[TaskRow]) -> str:
        order = sorted(rows, key=_is_done)
        shown = sorted(order[:SHOWN_ROWS], key=lambda row: row.line)
        width = max([len(row.id) for row in shown], default=2)
        lines = [_row(row, width) for row in shown]
        if len(rows) > len(shown):
            done = sum(_is_done(row) for row in order[SHOWN_ROWS:])
            lines.append(f"… and {len(rows) - len(shown)} more, {done} of them done")
        counts = ", ".join(
            f"{self._statuses[status]} {status.value}" for status in WorkStatus if self._statuses[status]
        )
        parts = [counts or "nothing finished", *([_describe_refused(self._refused)] if self._refused else [])]
        lines.append("; ".join([*parts, _describe_usage(self._usage), _duration(time.monotonic() - self._begin)]))
        return "\n".join(lines)

    def _line(self, kind: str, payload: object, code: int | None = None) -> None:
        line = {"v": VERSION, "type": kind, **({} if code is None else {"code": code}), "payload": payload}
        try:
            show(msgspec.json.encode(line).decode())
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise FleetError(
                "the reader of standard output has gone",
                "run the same command again: what is finished is not asked again",
            ) from error


def _is_done(row: TaskRow) -> bool:
    return row.result is not None and row.result.status is WorkStatus.DONE


def _row(row: TaskRow, width: int) -> str:
    result = row.result
    if result is None:
        return f"{row.id:<{width}}  {row.state.value:<9}  line {row.line}: {one_line(row.prompt, 60)}"
    text = result.response if result.status is WorkStatus.DONE else result.error
    refused = f"[{_describe_refused(result.refused)}] " if result.refused else ""
    return (
        f"{row.id:<{width}}  {result.status.value:<9}  {result.seconds:>7.1f} s  {refused}{one_line(text.strip(), 80)}"
    )


def _describe_refused(count: int) -> str:
    return f"{count} call{'' if count == 1 else 's'} refused"


def _describe_usage(totals: UsageTotals) -> str:
    """Tokens, and what they cost, as far as that is known."""
    about = "about " if totals.estimated else ""
    cost = f", {describe_cost(totals)}" if totals.cost is not None or totals.unpriced else ""
    return f"{about}{totals.tokens:,} tokens{cost}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
