"""Where a queue is: the URL of its database, which holds a password, and the id of the home whose conversations it names."""

from __future__ import annotations

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from cru.features.fleet import FleetError
from cru.features.fleet.database import Database
from cru.features.fleet.queue import WorkQueue, home_id


def test_without_the_library_a_url_of_postgres_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(FleetError, match="needs a library") as raised:
        Database("postgresql://here/x")
    assert raised.value.hint == "pip install 'cru[fleet]'"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@host:1/x?sslmode=require", "postgresql://host:1/x"),
        ("postgresql://u:sec?ret@host/x", "postgresql://…"),
        ("postgresql://host/x?password=sec@ret", "postgresql://…"),
        ("postgresql://u:sec@ret@host/x", "postgresql://host/x"),
        ("postgresql://host/x?password=secret", "postgresql://host/x"),
    ],
)
def test_the_place_of_a_queue_has_no_password(url: str, shown: str) -> None:
    assert Database(url).place == shown


@pytest.mark.parametrize("password", ["sec%zzret", "sec@ret", "sec/ret", "sec@ret/x"])
def test_a_url_that_cannot_be_read_is_not_shown(password: str) -> None:
    with pytest.raises(FleetError, match="CRU_DATABASE_URL cannot be read") as raised:
        WorkQueue(Database(f"postgresql://u:{password}@127.0.0.1:1/x"), "home").open()
    shown = str(raised.value.message) + raised.value.hint
    assert "sec" not in shown and "ret" not in shown and raised.value.__suppress_context__


def test_a_url_that_is_no_database_is_refused() -> None:
    with pytest.raises(FleetError, match="there is no database `mysql`"):
        Database("mysql://here")


def test_the_id_of_a_home_stays_and_a_copy_gets_one_of_its_own(tmp_path: Path) -> None:
    known = home_id(tmp_path / "fleet")
    assert known == home_id(tmp_path / "fleet") != ""
    shutil.copytree(tmp_path / "fleet", tmp_path / "copy")
    assert home_id(tmp_path / "copy") not in ("", known) and home_id(tmp_path / "fleet") == known


@pytest.mark.parametrize("kind", ["new", "copied"])
def test_processes_that_make_the_id_of_a_home_at_once_get_the_same(tmp_path: Path, kind: str) -> None:
    """With an id of its own each would queue items that no worker takes."""
    home_id(tmp_path / "first")
    barrier = Barrier(4)

    def make(folder: Path) -> str:
        barrier.wait()
        return home_id(folder)

    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            folder = tmp_path / f"fleet-{number}"
            if kind == "copied":
                shutil.copytree(tmp_path / "first", folder)
            assert set(pool.map(make, [folder] * 4)) == {home_id(folder)}
