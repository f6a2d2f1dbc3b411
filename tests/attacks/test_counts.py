from __future__ import annotations

from tests.attacks.counts import FLOOR, rows_by_class


def test_every_class_of_attacks_has_rows_and_all_of_them_many() -> None:
    rows = rows_by_class()
    assert min(rows.values()) >= 30, rows
    assert sum(rows.values()) >= FLOOR
