"""A batch on this machine: a journal of its items and of what came of them, which only grows. One run works on it at a time.

The conversations are the truth: a result that the journal has lost is read from the log of its item, under the key of its prompt.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files import decode_json
from cru.core.base.files.regular import APPENDING, append_lines, make_private_folder, open_regular, read_regular
from cru.features.fleet import FleetError
from cru.features.fleet.batch import RETRIED, BatchCounts, count_rows, dead_result, prompt_key, refuse_changed
from cru.features.fleet.records import BatchItem, Death, QueuedTask, TaskRow, TaskState, WorkResult, WorkStatus

SUFFIX = ".jsonl"
WAIT_SECONDS = 0.2
"""Between two looks whether another run has let go of the batch."""
KILLED = "cru batch was killed"


class ItemEvent(StrEnum):
    """What happened to an item. AGAIN: it is to be run once more and goes on; ANEW: it is asked once more."""

    BEGAN = "began"
    HANDED_BACK = "handed_back"
    AGAIN = "again"
    ANEW = "anew"


class BatchLine(Struct, frozen=True, omit_defaults=True):
    """A line of the journal: what an item asks (`item`, the `line` of its file, `max_deaths`), or what happened to it."""

    id: str
    item: BatchItem | None = None
    line: int = 0
    max_deaths: int = 0
    event: ItemEvent | None = None
    death: Death | None = None
    result: WorkResult | None = None


class ItemState(Struct):
    """An item by all lines of the journal. attempt: how often it was asked anew, from 1."""

    item: BatchItem
    line: int
    max_deaths: int
    attempt: int = 1
    is_running: bool = False
    deaths: tuple[Death, ...] = ()
    result: WorkResult | None = None

    def apply(self, line: BatchLine) -> None:
        """Change what the line says."""
        if line.item is not None:
            self.item, self.line, self.max_deaths = line.item, line.line, line.max_deaths
        elif line.death is not None:
            self.deaths, self.is_running = (*self.deaths, line.death), False
        elif line.result is not None:
            self.result, self.is_running = line.result, False
        elif line.event in (ItemEvent.AGAIN, ItemEvent.ANEW):
            self.result, self.deaths, self.max_deaths = None, (), line.max_deaths or self.max_deaths
            self.attempt += line.event is ItemEvent.ANEW
        else:
            self.is_running = line.event is ItemEvent.BEGAN


class LocalBatch:
    """A batch in `folder`. Only what `hold` has locked may be changed.

    part: of a batch that several machines share, each with its part; the keys of prompts are the same whatever the parts are
    """

    def __init__(self, folder: Path, name: str, part: str = "") -> None:
        """Raises OSError."""
        self.name = name
        self.path = folder / (name + part + SUFFIX)
        self.place = str(self.path)
        self._lock = -1
        self._states: dict[str, ItemState] = {}
        self._read()

    def hold(self, wait: Callable[[], object]) -> None:
        """Lock the batch; `wait` is called once if another run works on it, which is waited for. Raises FleetError, OSError."""
        make_private_folder(self.path.parent)
        has_waited = False
        while not self._try_lock():
            if not has_waited:
                wait()
            has_waited = True
            time.sleep(WAIT_SECONDS)
        self._read()
        self._count_killed()

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def add(self, items: Sequence[tuple[int, BatchItem]], max_deaths: int) -> int:
        """Write down the items (line, item) that are not there yet; how many. Raises ItemChanged, and then none is; FleetError."""
        lines, added = [], 0
        for line, item in items:
            known = self._states.get(item.id)
            if known is not None:
                refuse_changed(line, item, known.item)
            if known is None or (known.item, known.line) != (item, line):
                lines.append(BatchLine(item.id, item, line, max_deaths))
                added += known is None
        self._append(*lines)
        return added

    def retry(self, ids: Iterable[str], max_deaths: int) -> int:
        """Take back the results of items that ended otherwise than done; how many. One that was denied is asked anew. Raises FleetError."""
        lines = []
        for name in ids:
            result = self._states[name].result if name in self._states else None
            if result is not None and result.status in RETRIED:
                event = ItemEvent.ANEW if result.status is WorkStatus.DENIED else ItemEvent.AGAIN
                lines.append(BatchLine(name, event=event, max_deaths=max_deaths))
        self._append(*lines)
        return len(lines)

    def begin(self, name: str) -> None:
        """Write down that a run of the item begins. Raises FleetError."""
        self._append(BatchLine(name, event=ItemEvent.BEGAN))

    def hand_back(self, name: str) -> None:
        """Write down that its run was ended, and that it can go on. Raises FleetError."""
        self._append(BatchLine(name, event=ItemEvent.HANDED_BACK))

    def finish(self, name: str, result: WorkResult) -> WorkResult:
        """Write down what came of an item; the result with its deaths. Raises FleetError."""
        result = msgspec.structs.replace(result, deaths=self._states[name].deaths)
        self._append(BatchLine(name, result=result))
        return result

    def count_death(self, name: str, why: str) -> bool:
        """Write down that its run died; whether that was the last time. Raises FleetError."""
        self._append(BatchLine(name, death=Death(self.name, socket.gethostname(), time.time(), why)))
        state = self._states[name]
        if len(state.deaths) < state.max_deaths:
            return False
        self.finish(name, dead_result(state.item.context, state.deaths))
        return True

    def task(self, name: str) -> QueuedTask:
        """What a run of the item needs."""
        state = self._states[name]
        key = prompt_key(self.name, state.item, state.attempt)
        return QueuedTask(self.name, name, key, state.item, len(state.deaths), state.max_deaths)

    def row(self, name: str) -> TaskRow:
        state = self._states[name]
        where = TaskState.FINISHED if state.result is not None else TaskState.QUEUED
        where = TaskState.RUNNING if where is TaskState.QUEUED and state.is_running else where
        return TaskRow(
            name, state.line, where, state.item.prompt, state.item.context, "", len(state.deaths), state.result
        )

    def rows(self) -> list[TaskRow]:
        """All items, in the order of the file."""
        return sorted(map(self.row, self._states), key=lambda row: (row.line, row.id))

    def items(self) -> list[tuple[int, BatchItem]]:
        """All items with their lines, in the order of the file."""
        return sorted(((state.line, state.item) for state in self._states.values()), key=lambda pair: pair[0])

    def counts(self) -> BatchCounts:
        return count_rows(self.name, self.rows())

    def forget(self) -> int:
        """Remove the journal; how many items it had. The conversations stay. Raises OSError."""
        count = len(self._states)
        if count:
            self.path.unlink()
            self._states = {}
        return count

    # ------------------------------------------------------------------------------------------------------------------------------

    def _try_lock(self) -> bool:
        handle, is_ours = open_regular(self.path, APPENDING), False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # else it was forgotten between opening and locking
            is_ours = self.path.exists() and os.path.samestat(os.fstat(handle), self.path.stat())
        except BlockingIOError:
            return False
        finally:
            if not is_ours:
                os.close(handle)
        self._lock = handle if is_ours else -1
        return is_ours

    def _read(self) -> None:
        try:
            data = read_regular(self.path)
        except FileNotFoundError:
            data = b""
        self._states = {}
        for line in _decode(data):
            if line.item is not None and line.id not in self._states:
                self._states[line.id] = ItemState(line.item, line.line, line.max_deaths)
            elif line.id in self._states:
                self._states[line.id].apply(line)

    def _count_killed(self) -> None:
        for name in [name for name, state in self._states.items() if state.is_running]:
            self.count_death(name, KILLED)

    def _append(self, *lines: BatchLine) -> None:
        if not lines:
            return
        try:
            append_lines(self.path, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        except OSError as error:
            raise FleetError(
                f"the batch {self.place} cannot be written: {error.strerror or error}",
                "make room on the disk, then run the same command again: what is finished is not asked again",
            ) from error
        for line in lines:
            if line.item is not None and line.id not in self._states:
                self._states[line.id] = ItemState(line.item, line.line, line.max_deaths)
            else:
                self._states[line.id].apply(line)


def _decode(data: bytes) -> Iterator[BatchLine]:
    """Lines that can be read. Another one is torn, or damaged: its item runs again, and its log has the answer."""
    for text in data.split(b"\n"):
        try:
            if text:
                yield decode_json(text, BatchLine)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue


def local_batches(folder: Path) -> list[BatchCounts]:
    """How far each batch on this machine is, by name. Raises OSError."""
    return [LocalBatch(folder, path.name.removesuffix(SUFFIX)).counts() for path in sorted(folder.glob(f"*{SUFFIX}"))]
