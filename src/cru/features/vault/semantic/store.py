"""The vectors in the index: tables that are made when the first note is embedded. They hang on a note's content and title, so whoever
changes the index need not know of them: what does not fit the note any more does not count, and is cleared away here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.features.vault.index.schema import transaction
from cru.features.vault.semantic.passages import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TABLES = """
CREATE TABLE IF NOT EXISTS embedded (
    note INTEGER PRIMARY KEY, hash BLOB NOT NULL, title TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, note INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS passages_note ON passages (note);
"""
"""embedded.hash, title: of the note when it was embedded; passages.id: never used again, so the last one and their number tell whether
anything has changed; passages.vector: a byte with sign for each dimension, in any scale."""
_MODEL = "embedding_model"
_IS_VALID = "e.note = n.id AND e.hash = n.hash AND e.title = n.title"


class IndexedNote(Struct, frozen=True):
    """A note as the index knows it. digest: of its content"""

    id: int
    path: str
    title: str
    digest: bytes


class Coverage(Struct, frozen=True):
    """How many of the notes are embedded as they are now."""

    embedded: int
    notes: int

    @property
    def is_complete(self) -> bool:
        return self.embedded >= self.notes


def has_tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'passages'").fetchone())


def model_name(connection: sqlite3.Connection) -> str:
    """Of the vectors that are there, "" if there are none."""
    row = connection.execute("SELECT value FROM facts WHERE name = ?", (_MODEL,)).fetchone()
    return str(row[0]) if row else ""


def prepare(connection: sqlite3.Connection, model: str) -> None:
    """Make the tables; vectors of another model, and of notes that are gone or have changed, are dropped."""
    if not has_tables(connection):
        with transaction(connection):
            for statement in _TABLES.strip().split(";\n"):
                connection.execute(statement)
    if model_name(connection) != model:
        with transaction(connection):
            connection.execute("DELETE FROM passages")
            connection.execute("DELETE FROM embedded")
            connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_MODEL, model))
        return
    stale = f"SELECT e.note FROM embedded AS e WHERE NOT EXISTS (SELECT 1 FROM notes AS n WHERE {_IS_VALID})"
    if connection.execute(f"{stale} LIMIT 1").fetchone():
        with transaction(connection):
            connection.execute(f"DELETE FROM passages WHERE note IN ({stale})")
            connection.execute(
                f"DELETE FROM embedded AS e WHERE NOT EXISTS (SELECT 1 FROM notes AS n WHERE {_IS_VALID})"
            )


def pending_notes(connection: sqlite3.Connection) -> list[IndexedNote]:
    """Notes that are to be embedded, the newest first; `prepare` comes before."""
    sql = f"""SELECT n.id, n.path, n.title, n.hash FROM notes AS n
        WHERE NOT EXISTS (SELECT 1 FROM embedded AS e WHERE {_IS_VALID}) ORDER BY n.mtime_ns DESC"""
    return [IndexedNote(*row) for row in connection.execute(sql)]


def write_vectors(
    connection: sqlite3.Connection,
    model: str,
    notes: Sequence[tuple[IndexedNote, Sequence[Passage]]],
    vectors: Iterable[NDArray[np.float32]],
) -> None:
    """Keep the vectors of these notes, a row for each passage in turn. What another process has made of another model meanwhile stays."""
    rows = (row for part in vectors for row in _as_bytes(part))
    with transaction(connection):
        if model_name(connection) != model:
            return
        for note, passages in notes:
            connection.execute("DELETE FROM passages WHERE note = ?", (note.id,))
            connection.executemany(
                "INSERT INTO passages (note, start, end, vector) VALUES (?, ?, ?, ?)",
                [(note.id, passage.start, passage.end, next(rows)) for passage in passages],
            )
            connection.execute("INSERT OR REPLACE INTO embedded VALUES (?, ?, ?)", (note.id, note.digest, note.title))


def coverage(connection: sqlite3.Connection) -> Coverage:
    notes = connection.execute("SELECT count(*) FROM notes").fetchone()[0]
    if not has_tables(connection):
        return Coverage(0, notes)
    sql = f"SELECT count(*) FROM embedded AS e JOIN notes AS n ON {_IS_VALID}"
    return Coverage(connection.execute(sql).fetchone()[0], notes)


def embedded_notes(connection: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Those of these notes that are embedded as they are now."""
    if not has_tables(connection):
        return set()
    sql = f"SELECT 1 FROM embedded AS e JOIN notes AS n ON {_IS_VALID} WHERE n.id = ?"
    return {id for id in ids if connection.execute(sql, (id,)).fetchone()}


class FoundPassage(Struct, frozen=True):
    """A passage that is like a query. start, end: bytes of the note; cosine: how much, at most 1"""

    note: IndexedNote
    start: int
    end: int
    cosine: float


def find_passage(connection: sqlite3.Connection, id: int, cosine: float) -> FoundPassage | None:
    """None if its note has changed or is gone."""
    sql = f"""SELECT n.id, n.path, n.title, n.hash, p.start, p.end FROM passages AS p JOIN notes AS n ON n.id = p.note
        JOIN embedded AS e ON {_IS_VALID} WHERE p.id = ?"""
    row = connection.execute(sql, (id,)).fetchone()
    return FoundPassage(IndexedNote(*row[:4]), row[4], row[5], cosine) if row else None


def _as_bytes(vectors: NDArray[np.float32]) -> list[bytes]:
    import numpy as np

    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled: NDArray[np.int8] = np.rint(vectors / np.maximum(largest, 1e-9) * 127).astype(np.int8)
    return [row.tobytes() for row in scaled]
