"""The vectors in memory against those in the index, whatever is added and removed in between."""

from __future__ import annotations

import sqlite3

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cru.features.vault.semantic.store import _TABLES
from cru.features.vault.semantic.vectors import VectorTable

WIDTH = 4
Step = tuple[bool, int]
"""Whether passages are added (that many) or removed (those of that note)."""


@settings(max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=12), st.integers(0, 2**32 - 1))
def test_the_nearest_are_those_of_all_that_are_there(steps: list[Step], seed: int) -> None:
    chance = np.random.default_rng(seed)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_TABLES)
    table = VectorTable(WIDTH)
    query = np.array([1, 0, 0, 0], np.float32)
    for is_added, number in steps:
        if is_added:
            rows = [
                (int(chance.integers(6)), 0, 0, chance.integers(-127, 128, WIDTH).astype(np.int8).tobytes())
                for _ in range(number)
            ]
            connection.executemany("INSERT INTO passages (note, start, end, vector) VALUES (?, ?, ?, ?)", rows)
        else:
            connection.execute("DELETE FROM passages WHERE note = ?", (number,))
        table.refresh(connection)
        assert list(table.nearest(query, 0.1, None)) == _expected(connection, query, set(range(6)))
        assert list(table.nearest(query, 0.1, lambda: [1, 2])) == _expected(connection, query, {1, 2})
    connection.close()


def _expected(connection: sqlite3.Connection, query: np.ndarray, notes: set[int]) -> list[tuple[int, float]]:
    best: dict[int, tuple[float, int]] = {}
    for id, note, data in connection.execute("SELECT id, note, vector FROM passages ORDER BY id"):
        vector = np.frombuffer(data, np.int8).astype(np.float32)
        cosine = float((vector / np.maximum(np.linalg.norm(vector), 1e-9)) @ query)
        if cosine >= 0.1 and note in notes and cosine > best.get(note, (0.0, 0))[0]:
            best[note] = (cosine, id)
    return [(id, cosine) for cosine, id in sorted(best.values(), key=lambda each: (-each[0], each[1]))]


def test_many_are_put_in_order_piece_by_piece() -> None:
    chance = np.random.default_rng(1)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_TABLES)
    rows = [(note, 0, 0, chance.integers(1, 128, WIDTH).astype(np.int8).tobytes()) for note in range(3000)]
    connection.executemany("INSERT INTO passages (note, start, end, vector) VALUES (?, ?, ?, ?)", rows)
    table = VectorTable(WIDTH)
    table.refresh(connection)
    cosines = [cosine for _, cosine in table.nearest(np.array([1, 0, 0, 0], np.float32), 0.1, None)]
    assert len(cosines) > 2500 and cosines == sorted(cosines, reverse=True)
    connection.close()
