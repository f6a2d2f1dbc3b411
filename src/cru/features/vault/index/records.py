"""Notes as the index knows them."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from msgspec import Struct

from cru.features.vault.keys import fold


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


class NoteCounts(Struct, frozen=True):
    """How much there is. links: that lead to a note; problems: (path, what cannot be read)"""

    notes: int
    files: int
    links: int
    dangling: int
    tags: int
    tasks: int
    problems: tuple[tuple[str, str], ...]


_COUNTS = """
SELECT (SELECT count(*) FROM notes), (SELECT count(*) FROM files),
    (SELECT count(*) FROM links AS l JOIN targets AS t ON t.id = l.target WHERE t.note IS NOT NULL),
    (SELECT count(*) FROM links AS l JOIN targets AS t ON t.id = l.target WHERE t.note IS NULL AND t.file IS NULL),
    (SELECT count(DISTINCT tag) FROM tags), (SELECT count(*) FROM tasks)"""
_MOST_NAMES = 20_000
"""Names that one is compared with, to say which was probably meant."""


def count_notes(connection: sqlite3.Connection) -> NoteCounts:
    rows = connection.execute("SELECT path, problems FROM notes WHERE problems != '' ORDER BY path")
    problems = tuple((path, problem) for path, lines in rows for problem in lines.splitlines())
    notes, files, linked, dangling, tags, tasks = connection.execute(_COUNTS).fetchone()
    return NoteCounts(notes, files, linked, dangling, tags, tasks, problems)


def note_names(connection: sqlite3.Connection, name: str) -> list[str]:
    """Titles and paths that a misspelt name may have meant: of a large vault those that begin with the same letter."""
    first = fold(name)[:1]
    rows = connection.execute(
        "SELECT title, path FROM notes ORDER BY substr(title_key, 1, 1) != ?, path LIMIT ?", (first, _MOST_NAMES)
    ).fetchall()
    return [title for title, _ in rows] + [path for _, path in rows]


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
