"""All vectors in memory, and the nearest of them. A product with each of them: at 100,000 passages that is faster than what an index of
neighbours would save (docs/decisions/0057-search-by-meaning.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class VectorTable:
    """The vectors of the index as a matrix, brought up to date by what is new and gone."""

    def __init__(self) -> None:
        self._state = (0, 0)
        self._ids: NDArray[np.int64] | None = None
        self._notes: NDArray[np.int64] | None = None
        self._vectors: NDArray[np.float32] | None = None

    def refresh(self, connection: sqlite3.Connection, width: int) -> None:
        """width: dimensions of a vector; others are none of this model."""
        import numpy as np

        last, count = connection.execute("SELECT coalesce(max(id), 0), count(*) FROM passages").fetchone()
        if self._ids is not None and self._state == (last, count):
            return
        if self._ids is None or self._notes is None or self._vectors is None:
            self._ids, self._notes = np.empty(0, np.int64), np.empty(0, np.int64)
            self._vectors = np.empty((0, width), np.float32)
        present = np.fromiter((row[0] for row in connection.execute("SELECT id FROM passages")), np.int64)
        kept = np.isin(self._ids, present)
        sql = "SELECT id, note, vector FROM passages WHERE id > ? AND length(vector) = ? ORDER BY id"
        rows = connection.execute(sql, (self._state[0], width)).fetchall()
        new = np.frombuffer(b"".join(row[2] for row in rows), np.int8).reshape(-1, width).astype(np.float32)
        new /= np.maximum(np.linalg.norm(new, axis=1, keepdims=True), 1e-9)
        self._ids = np.concatenate([self._ids[kept], np.array([row[0] for row in rows], np.int64)])
        self._notes = np.concatenate([self._notes[kept], np.array([row[1] for row in rows], np.int64)])
        self._vectors = np.concatenate([self._vectors if kept.all() else self._vectors[kept], new])
        self._state = (last, count)

    def nearest(
        self, vector: NDArray[np.float32], least: float, notes: Callable[[], list[int]] | None
    ) -> Iterator[tuple[int, float]]:
        """(passage, cosine) of the nearest passages, of each note the best only; the nearest first.

        least: passages that are less similar are left out; notes: those that count, None for all
        """
        import numpy as np

        assert self._ids is not None and self._notes is not None and self._vectors is not None
        scores = self._vectors @ vector
        is_candidate = scores >= least
        if notes is not None:
            is_candidate &= np.isin(self._notes, np.array(notes(), np.int64))
        chosen = np.flatnonzero(is_candidate)
        seen = set()
        for at in chosen[np.argsort(-scores[chosen], kind="stable")].tolist():
            note = int(self._notes[at])
            if note not in seen:
                seen.add(note)
                yield int(self._ids[at]), float(scores[at])
