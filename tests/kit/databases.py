"""Fixtures: a Postgres server for all tests of a process, started by the first that needs it, and a database of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.kit.postgres import PostgresServer, postgres, programs

from cru.features.fleet.database import Database
from cru.features.fleet.schema import make_tables

TEMPLATE = "with_tables"


class Databases:
    """Databases of one server, each with the tables of the fleet."""

    def __init__(self, server: PostgresServer) -> None:
        self._base = server.url.rpartition("/")[0]
        self._server = server
        self._count = 0
        self._run(f"CREATE DATABASE {TEMPLATE}")
        database = Database(f"{self._base}/{TEMPLATE}")
        make_tables(database)
        database.close()

    def new(self) -> str:
        """The URL of a new database."""
        self._count += 1
        self._run(f"CREATE DATABASE test_{self._count} TEMPLATE {TEMPLATE}")
        return f"{self._base}/test_{self._count}"

    def _run(self, sql: str) -> None:
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(sql.encode())


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    if programs() is None:
        pytest.skip("Postgres is not installed (Debian: postgresql)")
    with postgres() as server:
        yield Databases(server)


@pytest.fixture
def url(databases: Databases) -> str:
    """Of a database of the test's own."""
    return databases.new()


@pytest.fixture
def fleet(url: str) -> dict[str, str]:
    """The environment of `cru batch` and `cru worker` with a database of the test's own."""
    return {"CRU_DATABASE_URL": url}
