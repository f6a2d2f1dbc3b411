"""Notes as the index knows them."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from msgspec import Struct


class NoteRecord(Struct, frozen=True):
    """A note as the index knows it. updated_at: Unix seconds of the file, None if it changed while it was read."""

    id: int
    path: str
    title: str
    digest: bytes
    properties: dict[str, Any]
    tags: list[str]
    size: int
    updated_at: float | None
    problems: tuple[str, ...]


_RECORD = "SELECT id, path, title, hash, properties, tags, size, mtime_ns, problems FROM notes"


def list_notes(connection: sqlite3.Connection, limit: int | None = None) -> list[NoteRecord]:
    """By path."""
    return [
        _record(row)
        for row in connection.execute(f"{_RECORD} ORDER BY path LIMIT ?", (-1 if limit is None else limit,))
    ]


def note_by_id(connection: sqlite3.Connection, id: int) -> NoteRecord:
    return _record(connection.execute(f"{_RECORD} WHERE id = ?", (id,)).fetchone())


def _record(row: tuple[Any, ...]) -> NoteRecord:
    id, path, title, digest, properties, tags, size, mtime_ns, problems = row
    return NoteRecord(
        id, path, title, digest, msgspec.json.decode(properties), msgspec.json.decode(tags), size, mtime_ns / 1e9 or None,
        tuple(problems.splitlines()),
    )  # fmt: skip
