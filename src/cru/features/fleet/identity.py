"""What makes a task the same as one that is in the queue: its home, its prompt, and the key under which that is asked once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TypeVar

import msgspec
from msgspec import Struct

from cru.core.base.files import decode_json
from cru.features.fleet import ItemChanged
from cru.features.fleet.database import Row
from cru.features.fleet.records import BatchItem

T = TypeVar("T")

SHARED = ""
"""In place of a home: conversations that are in the database, too, for workers of all homes."""


class AskedPrompt(Struct, frozen=True):
    """What is asked, of an item that a newer cru may have made."""

    prompt: str
    context: str = ""
    attach: tuple[str, ...] = ()


def prompt_key(batch: str, item: BatchItem, attempt: int) -> str:
    """Of a task's prompt in the log of its context. What is asked is part of it: a batch that was forgotten may ask something else under
    the same id."""
    digest = sha256(msgspec.json.encode((item.prompt, item.attach))).hexdigest()[:8]
    return f"{batch}/{item.id}:{digest}" + (f"/{attempt}" if attempt > 1 else "")


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


def refuse_changed(line: int, item: BatchItem, text: str) -> None:
    try:
        known = decode_item(text, AskedPrompt)
    except msgspec.DecodeError as error:
        raise ItemChanged(
            f"line {line}: item {item.id} is in the queue already, and cannot be read there: {error}",
            "give it another id, or the whole batch another name: --name NAME",
        ) from error
    for name in AskedPrompt.__struct_fields__:
        if getattr(known, name) != getattr(item, name):
            raise ItemChanged(
                f"line {line}: item {item.id} has another {name} than the one that was queued under this id",
                "give it another id, or the whole batch another name: --name NAME",
            )
