"""What makes a task the same as one that is in the queue: its home, its prompt, and the key under which that is asked once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from cru.core.base.files import decode_json
from cru.features.fleet import ItemChanged
from cru.features.fleet.batch import AskedPrompt, refuse_changed
from cru.features.fleet.database import Row
from cru.features.fleet.records import BatchItem

T = TypeVar("T")

SHARED = ""
"""In place of a home: conversations that are in the database, too, for workers of all homes."""


def refuse_other_home(batch: str, home: str, homes: set[str]) -> None:
    """Raises ItemChanged."""
    if homes <= {home}:
        return
    if home != SHARED and SHARED in homes:
        raise ItemChanged(
            f"the conversations of the batch {batch} are in the database", "add --shared, or another --name"
        )
    if home == SHARED:
        raise ItemChanged(f"the batch {batch} was queued without --shared", "leave it out, or take another --name")
    raise ItemChanged(
        f"the batch {batch} is one of another home that uses this database", "take another name: --name NAME"
    )


def decode_item(text: object, kind: type[T]) -> T:
    """Return what a column of the queue holds. Raises msgspec.DecodeError, also for bytes that are not UTF-8: SQLite keeps what it gets."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    if not isinstance(data, bytes):
        raise msgspec.DecodeError("not a text")
    return decode_json(data, kind)


def readable_items(rows: Iterable[Row]) -> Iterator[tuple[int, BatchItem]]:
    """Yield the lines and items of rows; one that cannot be read is left out, since whoever claims it reports it."""
    for line, text in rows:
        try:
            yield line, decode_item(text, BatchItem)
        except msgspec.DecodeError:
            continue


def refuse_changed_text(line: int, item: BatchItem, text: str) -> None:
    """`refuse_changed` for an item as the queue holds it. Raises ItemChanged."""
    try:
        known = decode_item(text, AskedPrompt)
    except msgspec.DecodeError as error:
        raise ItemChanged(
            f"line {line}: item {item.id} is in the queue already, and cannot be read there: {error}",
            "give it another id, or the whole batch another name: --name NAME",
        ) from error
    refuse_changed(line, item, known)
