"""The database of the queue: SQLite in a file, or Postgres behind a URL. SQL has `:name` for parameters, and
{now} for the database's clock in milliseconds."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cru.core.base.files.regular import PRIVATE, make_private_folder
from cru.core.base.files.sqlite import use_write_ahead_log
from cru.features.fleet import FleetError, QueueUnavailable

if TYPE_CHECKING:
    import psycopg

Row = tuple[Any, ...]
Run = Callable[..., list[Row]]
"""(sql, **parameters) -> rows, within a transaction."""

POSTGRES = ("postgresql://", "postgres://")
LOCK_SECONDS = 30
POSTGRES_OPTIONS: dict[str, Any] = {
    "autocommit": True, "application_name": "cru", "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5,
    "keepalives_count": 3, "tcp_user_timeout": 30_000,
}  # fmt: skip
"""Nothing waits for ever for a server that is gone. What the URL says itself wins."""
STATEMENT_SECONDS = 30
"""For a statement, and for who is stopped within a transaction and holds up others."""
WALKING = ("enable_sort", "enable_hashjoin", "enable_seqscan", "jit")
"""What Postgres must not do: a claim walks an index to the first task that may run (0.1 ms), instead of sorting 10,000 that
nobody has counted yet (280 ms)."""
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


class Database(Protocol):
    """One connection, made when it is first needed and again after an error. Belongs to one thread."""

    place: str

    def transaction(self) -> AbstractContextManager[Run]:
        """All of the block or nothing. Raises QueueUnavailable."""
        ...

    def close(self) -> None: ...


def open_database(url: str, folder: Path) -> Database:
    """The database that a URL names, "" is the file in this folder. Nothing is connected yet. Raises FleetError."""
    if url.startswith(POSTGRES):
        return PostgresDatabase(url)
    if url and not url.startswith("sqlite:///"):
        raise FleetError(
            f"CRU_DATABASE_URL: there is no database `{url.partition(':')[0]}`", "postgresql://…, or leave it unset"
        )
    path = Path(url.removeprefix("sqlite:///")) if url else folder / "queue.sqlite"
    return SqliteDatabase(path)


class SqliteDatabase:
    """A file on this machine; several processes may use it."""

    now = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self._path = path
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Run]:
        try:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            with _rolled_back(lambda: connection.execute("ROLLBACK")):
                yield lambda sql, **values: connection.execute(
                    sql.format(now=self.now, skip_locked="", locked=""), values
                ).fetchall()
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise QueueUnavailable(
                f"the queue {self.place} cannot be used: {error}", "look at the disk; what is in the queue stays there"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            make_private_folder(self._path.parent)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
            connection = sqlite3.connect(
                self._path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
            )
            # one text that is not UTF-8 must not make all others unreadable
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            use_write_ahead_log(connection, LOCK_SECONDS)
            connection.execute("PRAGMA synchronous=FULL")
            self._connection = connection
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


class PostgresDatabase:
    """A server for workers on many machines. Needs the extra `fleet`."""

    now = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise FleetError("a queue in Postgres needs a library", "pip install 'cru[fleet]'") from error
        self._psycopg = psycopg
        self._url = url
        self._connection: psycopg.Connection | None = None
        self.place = _without_password(url)

    @contextmanager
    def transaction(self) -> Iterator[Run]:
        errors = self._psycopg
        try:
            connection = self._connect()
            with connection.transaction(), connection.cursor() as cursor:
                yield lambda sql, **values: self._run(cursor, sql, values)
        except errors.Error as error:
            self.close()
            text = str(error).strip().splitlines()
            if isinstance(error, errors.DataError | errors.ProgrammingError):
                raise FleetError(
                    f"the queue {self.place} refuses this: {text[0] if text else type(error).__name__}"
                ) from error
            raise QueueUnavailable(
                f"the queue {self.place} cannot be used: {text[0] if text else type(error).__name__}",
                "is the server up, and does CRU_DATABASE_URL name it?",
            ) from error

    def _run(self, cursor: psycopg.Cursor[Row], sql: str, values: dict[str, Any]) -> list[Row]:
        text = sql.format(now=self.now, skip_locked="FOR UPDATE SKIP LOCKED", locked="FOR UPDATE")
        cursor.execute(_PARAMETER.sub(r"%(\1)s", text).encode(), values)
        return cursor.fetchall() if cursor.description is not None else []

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            chosen = self._parse()
            options = {name: value for name, value in POSTGRES_OPTIONS.items() if name not in chosen}
            connection = self._psycopg.connect(self._url, **options)
            for name in WALKING:
                connection.execute(f"SET {name} = off".encode())
            for name in ("statement_timeout", "idle_in_transaction_session_timeout"):  # a pooler takes no options
                connection.execute(f"SET {name} = {STATEMENT_SECONDS * 1000}".encode())
            self._connection = connection
        return self._connection

    def _parse(self) -> dict[str, Any]:
        """What the URL says. Raises FleetError without a word of it: there is a password in it."""
        try:
            return self._psycopg.conninfo.conninfo_to_dict(self._url)
        except self._psycopg.ProgrammingError:
            raise FleetError(
                "CRU_DATABASE_URL cannot be read",
                "postgresql://USER:PASSWORD@HOST:PORT/NAME, with %XX for @ : / ? in the password",
            ) from None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._psycopg.Error):
                connection.close()


@contextmanager
def _rolled_back(roll_back: Callable[[], object]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            roll_back()
        raise


def _without_password(url: str) -> str:
    """For messages: nothing before the last @, nor any option."""
    scheme, _, rest = url.partition("://")
    before, mark, place = rest.rpartition("@")
    is_option = "?" in before or (not mark and "?" in place)
    return f"{scheme}://{'…' if mark and is_option else place.partition('?')[0]}"
