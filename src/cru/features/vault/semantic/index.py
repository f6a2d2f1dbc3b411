"""Search by meaning over the index of a vault: notes are embedded in pieces, and asked at any time in between."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cru.features.vault.index.index import NoteIndex, index_errors
from cru.features.vault.index.rows import NoteRow
from cru.features.vault.search.full_text import filter_conditions
from cru.features.vault.search.query import SearchQuery
from cru.features.vault.semantic.model import Embedder, load_embedder
from cru.features.vault.semantic.passages import Passage, split_note
from cru.features.vault.semantic.store import (
    Coverage,
    FoundPassage,
    IndexedNote,
    coverage,
    find_passage,
    model_name,
    pending_notes,
    prepare,
    write_vectors,
)
from cru.features.vault.semantic.vectors import VectorTable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

LEAST_COSINE = 0.1
"""What is less similar than this, or than LEAST_PART of the best, has nothing to do with the query (decision record)."""
LEAST_PART = 0.5
MOST_NOTES, MOST_PASSAGES = 16, 32
"""So many are embedded together: the first answer comes soon, and a stop loses and waits for no more."""
_SNIPPET = 240
"""Characters of a passage that are shown."""


class SemanticIndex:
    """lock: who holds it may use the connection of `index`; load: gives what makes vectors, called once."""

    def __init__(
        self, index: NoteIndex, lock: AbstractContextManager[object], load: Callable[[], Embedder] = load_embedder
    ) -> None:
        self._index = index
        self._lock = lock
        self._load = load
        self._loading = threading.Lock()
        self._embedding = threading.Lock()
        self._embedder: Embedder | None = None
        self._queue: list[IndexedNote] = []
        self._table: VectorTable | None = None
        self._coverage = ((-1, -1), Coverage(0, 0))

    def reset(self) -> None:
        """The index is a new one."""
        self._table = None
        self._queue.clear()
        self._coverage = ((-1, -1), Coverage(0, 0))

    def coverage(self) -> Coverage:
        with self._connected() as connection:
            version = (connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes)
            if self._coverage[0] != version:
                self._coverage = (version, coverage(connection))
            state = self._coverage[1]
            is_ours = self._embedder is None or model_name(connection) == self._embedder.name
        return state if is_ours else Coverage(0, state.notes)

    def embed(
        self, seconds: float | None, progress: Callable[[int, int], object], stop: Callable[[], bool]
    ) -> Coverage:
        """Embed notes for about so long, None for all of them. Raises NoEmbeddings, IndexUnusable."""
        model = self._model()
        with self._connected() as connection:
            if not self.coverage().is_complete:
                prepare(connection, model.name)
            state = self.coverage()
        progress(state.embedded, state.notes)
        skipped: set[int] = set()
        end = None if seconds is None else time.monotonic() + seconds
        while not state.is_complete and not stop() and (end is None or time.monotonic() < end):
            with self._embedding:
                count = self._embed_some(model, skipped, stop)
            # counting them in the index takes as long as embedding a few, at 100,000 notes
            state = Coverage(state.embedded + count, state.notes)
            if not count or state.is_complete:
                state = self.coverage()
            progress(state.embedded, state.notes)
            if not count:
                break
        return self.coverage()

    def search(self, query: SearchQuery, limit: int) -> list[FoundPassage]:
        """Of the notes that mean most nearly what is asked the best passage. Raises NoEmbeddings, IndexUnusable."""
        model = self._model()
        [vector] = model.embed([query.words])
        places: list[FoundPassage] = []
        with self._connected() as connection:
            if model_name(connection) != model.name:
                return []
            self._table = self._table or VectorTable(len(vector))
            self._table.refresh(connection)
            candidates = _candidates(connection, query)
            for passage, cosine in self._table.nearest(vector, LEAST_COSINE, candidates):
                if len(places) == limit or (places and cosine < LEAST_PART * places[0].cosine):
                    break
                place = find_passage(connection, passage, cosine)
                if place is not None:
                    places.append(place)
        return places

    def _model(self) -> Embedder:
        with self._loading:
            if self._embedder is None:
                self._embedder = self._load()
            return self._embedder

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock, index_errors(self._index.file):
            yield self._index.connection

    def _embed_some(self, model: Embedder, skipped: set[int], stop: Callable[[], bool]) -> int:
        """The number of notes that were embedded, or added to `skipped` because they cannot be read as the index knows them."""
        with self._connected() as connection:
            if not self._queue:
                self._queue = [note for note in pending_notes(connection) if note.id not in skipped]
        notes: list[tuple[IndexedNote, list[Passage]]] = []
        texts: list[str] = []
        count = 0
        while self._queue and count < MOST_NOTES and len(texts) < MOST_PASSAGES:
            note = self._queue.pop(0)
            count += 1
            row = self._read(note)
            if row is None:
                skipped.add(note.id)
            else:
                notes.append((note, split_note(row.note, _text_of(row))))
                texts += [passage.text for passage in notes[-1][1]]
        vectors = []
        for start in range(0, len(texts), MOST_PASSAGES):
            if stop():
                return 0  # they are asked for again
            vectors.append(model.embed(texts[start : start + MOST_PASSAGES]))
        if notes:
            with self._connected() as connection:
                write_vectors(connection, model.name, notes, vectors)
        return count

    def _read(self, note: IndexedNote) -> NoteRow | None:
        """None if the file is gone or another one than that of the index: the next update of the index sees it."""
        row = self._index.read_row(note.path)
        return row if row is not None and row.digest == note.digest else None

    def snippet(self, place: FoundPassage) -> str:
        """The beginning of a passage; empty if the file has changed meanwhile."""
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
