"""The database of the fleet: Postgres behind a URL. SQL has `%(name)s` for parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from cru.features.fleet import FleetError, QueueUnavailable

if TYPE_CHECKING:
    import psycopg

Row = tuple[Any, ...]
Run = Callable[..., list[Row]]
"""(sql, **parameters) -> rows, within a transaction."""

POSTGRES = ("postgresql://", "postgres://")
POSTGRES_OPTIONS: dict[str, Any] = {
    "application_name": "cru", "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5,
    "keepalives_count": 3, "tcp_user_timeout": 30_000,
}  # fmt: skip
"""Nothing waits for ever for a server that is gone. What the URL says itself wins."""
STATEMENT_SECONDS = 30
"""For a statement, and for a transaction whose process is stopped and holds up others."""


class Database:
    """One connection to a Postgres server, made when it is first needed and again after an error. Belongs to one thread. Needs the extra
    `fleet`.

    place: names it, without a password
    """

    def __init__(self, url: str) -> None:
        """Nothing is connected yet. Raises FleetError."""
        if not url.startswith(POSTGRES):
            raise FleetError(
                f"CRU_DATABASE_URL: there is no database `{url.partition(':')[0]}`", "postgresql://…, or leave it unset"
            )
        try:
            import psycopg
        except ImportError as error:
            raise FleetError("a queue in Postgres needs a library", "pip install 'cru[fleet]'") from error
        self._psycopg = psycopg
        self.url = url
        self._connection: psycopg.Connection | None = None
        self.place = _without_password(url)

    @contextmanager
    def transaction(self) -> Iterator[Run]:
        """All of the block or nothing. Raises QueueUnavailable, FleetError."""
        errors = self._psycopg
        try:
            connection = self._connect()
            with connection.transaction(), connection.cursor() as cursor:
                yield lambda sql, **values: self._run(cursor, sql, values)
        except errors.Error as error:
            self.close()
            text = str(error).strip().splitlines()
            if isinstance(error, errors.DataError):
                raise FleetError(
                    f"the queue {self.place} refuses this: {text[0] if text else type(error).__name__}"
                ) from error
            raise QueueUnavailable(
                f"the queue {self.place} cannot be used: {text[0] if text else type(error).__name__}",
                "is the server up, and does CRU_DATABASE_URL name it?",
            ) from error

    def _run(self, cursor: psycopg.Cursor[Row], sql: str, values: dict[str, Any]) -> list[Row]:
        cursor.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description is not None else []

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            chosen = self.chosen()
            options = {name: value for name, value in POSTGRES_OPTIONS.items() if name not in chosen}
            connection = self._psycopg.connect(self.url, autocommit=True, **options)
            for name in ("statement_timeout", "idle_in_transaction_session_timeout"):  # a pooler takes no options
                connection.execute(f"SET {name} = {STATEMENT_SECONDS * 1000}".encode())
            self._connection = connection
        return self._connection

    def chosen(self) -> dict[str, Any]:
        """What the URL says. Raises FleetError without a word of it: there is a password in it."""
        try:
            chosen = self._psycopg.conninfo.conninfo_to_dict(self.url)
            if (
                self.url.partition("?")[0].count("@") > 1
                or not str(chosen.get("port", "1")).replace(",", "").isdecimal()
            ):
                raise self._psycopg.ProgrammingError  # a part of a password, which an error of the connection would show
            return chosen
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


def _without_password(url: str) -> str:
    """For messages: nothing before the last @, nor any option."""
    scheme, _, rest = url.partition("://")
    before, mark, place = rest.rpartition("@")
    is_option = "?" in before or (not mark and "?" in place)
    return f"{scheme}://{'…' if mark and is_option else place.partition('?')[0]}"
