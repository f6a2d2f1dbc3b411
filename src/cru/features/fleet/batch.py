"""What a batch is, wherever it is kept: items, rows, counts, and the key under which a prompt is asked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Protocol

import msgspec
from msgspec import Struct

from cru.features.fleet import ItemChanged
from cru.features.fleet.records import BatchItem, Death, TaskRow, TaskState, WorkResult, WorkStatus

RETRIED = (WorkStatus.FAILED, WorkStatus.TIMED_OUT, WorkStatus.DEAD, WorkStatus.DENIED, WorkStatus.CANCELLED)


class AskedPrompt(Struct, frozen=True):
    """What is asked, of an item that a newer cru may have made."""

    prompt: str
    context: str = ""
    attach: tuple[str, ...] = ()


class BatchCounts(Struct, frozen=True):
    """How far a batch is: tasks by state, finished ones by how they ended."""

    name: str
    states: Mapping[TaskState, int]
    statuses: Mapping[WorkStatus, int]


class ItemBatch(Protocol):
    """A batch, on this machine or in a database."""

    name: str
    place: str

    def rows(self) -> list[TaskRow]: ...

    def items(self) -> list[tuple[int, BatchItem]]: ...

    def close(self) -> None: ...


def count_rows(name: str, rows: Iterable[TaskRow]) -> BatchCounts:
    """How many rows there are of each state and status."""
    rows = list(rows)
    statuses = Counter(row.result.status for row in rows if row.result is not None)
    return BatchCounts(name, Counter(row.state for row in rows), statuses)


def prompt_key(batch: str, item: BatchItem, attempt: int) -> str:
    """The key of an item's prompt in the log of its context. What is asked is part of it: a batch that was forgotten may ask something else
    under the same id."""
    digest = sha256(msgspec.json.encode((item.prompt, item.attach))).hexdigest()[:8]
    return f"{batch}/{item.id}:{digest}" + (f"/{attempt}" if attempt > 1 else "")


def refuse_changed(line: int, item: BatchItem, known: AskedPrompt | BatchItem) -> None:
    """Raises ItemChanged if the item asks something else than the known one of the same id."""
    for name in AskedPrompt.__struct_fields__:
        if getattr(known, name) != getattr(item, name):
            raise ItemChanged(
                f"line {line}: item {item.id} has another {name} than the one that the batch has under this id",
                "give it another id, or the whole batch another name: --name NAME",
            )


def dead_result(context: str, deaths: Sequence[Death]) -> WorkResult:
    """The result of an item whose runs died too often; the last death names the reason."""
    why = deaths[-1].why
    error = f"its run died {len(deaths)} times: {why}" if len(deaths) > 1 else f"its run died: {why}"
    resume = f"cru -C {context} --resume"
    return WorkResult(WorkStatus.DEAD, code=1, error=error, context=context, deaths=tuple(deaths), resume=resume)
