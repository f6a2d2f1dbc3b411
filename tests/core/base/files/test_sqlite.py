"""Whoever opens a database that another one is just making waits for it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from cru.core.base.files.sqlite import use_write_ahead_log
from cru.features.vault.index.schema import open_index


def read_index(path: Path) -> None:
    open_index(path).close()


def being_made(path: Path) -> sqlite3.Connection:
    maker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    maker.execute("BEGIN IMMEDIATE")
    return maker


def test_who_comes_while_a_file_is_made_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.sqlite"
    maker = being_made(path)
    waits = threading.Event()
    monkeypatch.setattr("cru.core.base.files.sqlite.time.sleep", lambda seconds: waits.set())

    def end() -> None:
        assert waits.wait(20)
        maker.execute("COMMIT")

    ending = threading.Thread(target=end)
    ending.start()
    read_index(path)
    ending.join()
    maker.close()
    assert waits.is_set()


def test_a_lock_that_stays_is_an_error_in_the_end(tmp_path: Path) -> None:
    maker = being_made(tmp_path / "x.sqlite")
    other = sqlite3.connect(tmp_path / "x.sqlite", timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        use_write_ahead_log(other, 0.05)
    other.close()
    maker.close()
