"""Search by meaning over the index of a vault: notes are embedded in pieces, and asked at any time in between."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cru.vault.index.rows import NoteRow
from cru.vault.search.full_text import Hit, filter_conditions
from cru.vault.search.query import SearchQuery
from cru.vault.semantic.model import Embedder, load_embedder
from cru.vault.semantic.passages import split_note
from cru.vault.semantic.store import (
    Coverage,
    FoundPassage,
    IndexedNote,
    coverage,
    find_passage,
    pending_notes,
    prepare,
    write_vectors,
)
from cru.vault.semantic.vectors import VectorTable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

LEAST_COSINE = 0.1
"""What is less similar than this, or than LEAST_PART of the best, has nothing to do with the query (decision record)."""
LEAST_PART = 0.5
AT_ONCE = 16
"""Notes that are embedded together: the first answer comes soon, and a stop loses no more."""
_SNIPPET = 240
"""Characters of a passage that are shown."""


class SemanticIndex:
    """connection: of the index, used under `lock` only; read_row: a note as it is in the folder now; load: gives what makes vectors, called
    once."""

    def __init__(
        self,
        connection: Callable[[], sqlite3.Connection],
        lock: AbstractContextManager[object],
        read_row: Callable[[str], NoteRow | None],
        load: Callable[[], Embedder] = load_embedder,
    ) -> None:
        self._read_row = read_row
        self._connection = connection
        self._lock = lock
        self._load = load
        self._loading = threading.Lock()
        self._embedder: Embedder | None = None
        self._table = VectorTable()

    def reset(self) -> None:
        """The index is a new one."""
        self._table = VectorTable()

    def coverage(self) -> Coverage:
        with self._lock:
            return coverage(self._connection())

    def embed(
        self, seconds: float | None, progress: Callable[[int, int], object], stop: Callable[[], bool]
    ) -> Coverage:
        """Embed notes for about so long, None for all of them. Raises NoEmbeddings, IndexUnusable."""
        model = self._model()
        end = None if seconds is None else time.monotonic() + seconds
        with self._lock:
            prepare(self._connection(), model.name)
        state = self.coverage()
        progress(state.embedded, state.notes)
        skipped: set[int] = set()
        while not stop() and (end is None or time.monotonic() < end) and (count := self._embed_some(model, skipped)):
            state = Coverage(min(state.embedded + count, state.notes), state.notes)
            progress(state.embedded, state.notes)
        return self.coverage()

    def search(self, query: SearchQuery, limit: int) -> list[Hit]:
        """The notes with the passages that mean most nearly what is asked. Raises NoEmbeddings."""
        model = self._model()
        [vector] = model.embed([query.words])
        places: list[tuple[FoundPassage, float]] = []
        with self._lock:
            connection = self._connection()
            prepare(connection, model.name)
            self._table.refresh(connection, len(vector))
            candidates = _candidates(connection, query)
            for passage, cosine in self._table.nearest(vector, LEAST_COSINE, candidates):
                if len(places) == limit or (places and cosine < LEAST_PART * places[0][1]):
                    break
                place = find_passage(connection, passage)
                if place is not None:
                    places.append((place, cosine))
        return [Hit(place.note.path, place.note.title, cosine, self._snippet(place)) for place, cosine in places]

    def _model(self) -> Embedder:
        with self._loading:
            if self._embedder is None:
                self._embedder = self._load()
            return self._embedder

    def _embed_some(self, model: Embedder, skipped: set[int]) -> int:
        """The number of notes that were embedded, or added to `skipped` because they cannot be read as the index knows them."""
        with self._lock:
            pending = pending_notes(self._connection(), AT_ONCE, skipped)
        notes = []
        for note in pending:
            row = self._read(note)
            if row is None:
                skipped.add(note.id)
            else:
                notes.append((note, split_note(row.note, _text_of(row))))
        if notes:
            vectors = model.embed([passage.text for _, passages in notes for passage in passages])
            with self._lock:
                write_vectors(self._connection(), model.name, notes, vectors)
        return len(pending)

    def _read(self, note: IndexedNote) -> NoteRow | None:
        """None if the file is gone or another one than that of the index: the next update of the index sees it."""
        row = self._read_row(note.path)
        return row if row is not None and row.digest == note.digest else None

    def _snippet(self, place: FoundPassage) -> str:
        """ "" if the file has changed meanwhile."""
        row = self._read(place.note)
        if row is None:
            return ""
        text = " ".join(_text_of(row)[place.start : place.end].decode(errors="replace").split())
        return text if len(text) <= _SNIPPET else f"{text[:_SNIPPET].rpartition(' ')[0] or text[:_SNIPPET]}…"


def _text_of(row: NoteRow) -> bytes:
    """What positions in a note count: its bytes as UTF-8."""
    return row.data.decode(errors="replace").encode()


def _candidates(connection: sqlite3.Connection, query: SearchQuery) -> Callable[[], list[int]] | None:
    """The notes that a query's filters and exact words leave; None if it has none."""
    condition, values = filter_conditions(query.filters)
    conditions = [condition] if condition else []
    for expression, is_in in ((query.required, "IN"), (query.excluded, "NOT IN")):
        if expression:
            conditions.append(f"n.id {is_in} (SELECT rowid FROM texts WHERE texts MATCH ?)")
            values.append(expression)
    if not conditions:
        return None
    sql = f"SELECT n.id FROM notes AS n WHERE {' AND '.join(conditions)}"
    return lambda: [row[0] for row in connection.execute(sql, values)]
