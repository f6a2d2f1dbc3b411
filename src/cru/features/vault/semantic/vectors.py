"""All vectors in memory, and the nearest of them. A product with each of them: at 100,000 passages that is faster than what an index of
neighbours would save (docs/decisions/vault.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from threadpoolctl import ThreadpoolController

_GONE = -1
"""The note of a row whose passage is gone; its vector is 0, so it is like nothing."""
_FIRST = 256
"""Rows that are put in order first: more are seldom asked for."""


class VectorTable:
    """The vectors of the index as a matrix, brought up to date by what is new and gone, so that a change of one note costs little.

    width: dimensions of a vector; vectors of the index that have others are left out
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._clear()

    def _clear(self) -> None:
        import numpy as np

        self._last = 0
        self._alive = 0
        self._size = 0
        self._ids = np.empty(0, np.int64)
        self._notes = np.empty(0, np.int64)
        self._vectors = np.empty((0, self._width), np.float32)

    def refresh(self, connection: sqlite3.Connection) -> None:
        last, count = connection.execute("SELECT coalesce(max(id), 0), count(*) FROM passages").fetchone()
        if (last, count) == (self._last, self._alive):
            return
        if self._size - count > self._size // 2:  # much is gone: its memory, too
            self._clear()
        self._add(connection)
        if self._alive != count:
            self._forget(connection)
        self._last, self._alive = last, count

    def _add(self, connection: sqlite3.Connection) -> None:
        import numpy as np

        sql = "SELECT id, note, vector FROM passages WHERE id > ? AND length(vector) = ? ORDER BY id"
        rows = connection.execute(sql, (self._last, self._width)).fetchall()
        begin, end = self._size, self._size + len(rows)
        if end > len(self._ids):
            self._grow(end + end // 4)  # memory that is not written to is not taken
        new = np.frombuffer(b"".join(row[2] for row in rows), np.int8).reshape(-1, self._width).astype(np.float32)
        new /= np.maximum(np.linalg.norm(new, axis=1, keepdims=True), 1e-9)
        self._ids[begin:end] = [row[0] for row in rows]
        self._notes[begin:end] = [row[1] for row in rows]
        self._vectors[begin:end] = new
        self._size = end
        self._alive += len(rows)

    def _grow(self, capacity: int) -> None:
        import numpy as np

        for name in ("_ids", "_notes", "_vectors"):
            before = getattr(self, name)
            after = np.zeros((capacity, *before.shape[1:]), before.dtype)
            after[: self._size] = before[: self._size]
            setattr(self, name, after)

    def _forget(self, connection: sqlite3.Connection) -> None:
        import numpy as np

        present = np.array([row[0] for row in connection.execute("SELECT id FROM passages")], np.int64)
        is_gone = ~np.isin(self._ids[: self._size], present)
        self._notes[: self._size][is_gone] = _GONE
        self._vectors[: self._size][is_gone] = 0

    def nearest(
        self, vector: NDArray[np.float32], least: float, notes: Callable[[], list[int]] | None
    ) -> Iterator[tuple[int, float]]:
        """(passage, cosine) of the nearest passages, of each note the best only; the nearest first.

        least: more than 0; passages that are less similar are left out; notes: those that count, None for all
        """
        import numpy as np

        with _threads().limit(limits=1, user_api="blas"):
            scores = self._vectors[: self._size] @ vector
        is_candidate = scores >= least
        if notes is not None:
            is_candidate &= np.isin(self._notes[: self._size], np.array(notes(), np.int64))
        seen = set()
        for at in _in_order(scores, np.flatnonzero(is_candidate)):
            note = int(self._notes[at])
            if note not in seen:
                seen.add(note)
                yield int(self._ids[at]), float(scores[at])


@cache
def _threads() -> ThreadpoolController:
    """What says how many threads numpy uses. With two on two busy processors a product takes five times as long."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _in_order(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> Iterator[int]:
    """These rows, the highest score first; those that nobody asks for are not put in order."""
    import numpy as np

    count = _FIRST
    while len(rows) > count:
        parts = np.argpartition(-scores[rows], count)
        first = rows[parts[:count]]
        yield from first[np.argsort(-scores[first], kind="stable")].tolist()
        rows, count = rows[parts[count:]], count * 8
    yield from rows[np.argsort(-scores[rows], kind="stable")].tolist()
