"""The tables of the queue, the same in both databases."""

from __future__ import annotations

from cru.features.fleet import QueueTooNew
from cru.features.fleet.database import Database, PostgresDatabase

VERSION = 1
_LOCK = 0x637275  # of the advisory lock under which the tables are made

TABLES = (
    "CREATE TABLE IF NOT EXISTS cru_queue (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS cru_tasks (
        batch TEXT NOT NULL, id TEXT NOT NULL, line BIGINT NOT NULL, version BIGINT NOT NULL, home TEXT NOT NULL,
        context TEXT NOT NULL, attempt BIGINT NOT NULL DEFAULT 1, item TEXT NOT NULL, state TEXT NOT NULL,
        worker TEXT NOT NULL DEFAULT '', max_deaths BIGINT NOT NULL, deaths BIGINT NOT NULL DEFAULT 0,
        queued_at BIGINT NOT NULL, not_before BIGINT NOT NULL DEFAULT 0, started_at BIGINT NOT NULL DEFAULT 0,
        ended_at BIGINT NOT NULL DEFAULT 0, status TEXT NOT NULL DEFAULT '',
        result TEXT NOT NULL DEFAULT '', PRIMARY KEY (batch, id))""",
    "DROP INDEX IF EXISTS cru_tasks_next",
    "CREATE INDEX IF NOT EXISTS cru_tasks_queued ON cru_tasks (queued_at, line) WHERE state = 'queued'",
    "CREATE INDEX IF NOT EXISTS cru_tasks_context ON cru_tasks (home, context, state)",
    """CREATE TABLE IF NOT EXISTS cru_workers (
        id TEXT PRIMARY KEY, host TEXT NOT NULL, pid BIGINT NOT NULL, home TEXT NOT NULL, beat BIGINT NOT NULL,
        interval_ms BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS cru_deaths (
        batch TEXT NOT NULL, id TEXT NOT NULL, worker TEXT NOT NULL, host TEXT NOT NULL, at BIGINT NOT NULL, why TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS cru_deaths_task ON cru_deaths (batch, id)",
    """CREATE TABLE IF NOT EXISTS cru_files (
        context TEXT NOT NULL, path TEXT NOT NULL, part BIGINT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (context, path, part))""",
)
"""cru_tasks: see records.QueuedTask; home: the id of the home whose contexts it uses, "" if they are in cru_files, which has files of
contexts in parts; times in milliseconds of the database's clock."""


def make_tables(database: Database) -> None:
    """Make what is not there. Raises QueueTooNew, QueueUnavailable."""
    with database.transaction() as run:
        if isinstance(database, PostgresDatabase):
            run("SELECT pg_advisory_xact_lock(:key)", key=_LOCK)
        for table in TABLES:
            run(table)
        run("INSERT INTO cru_queue VALUES ('version', :version) ON CONFLICT DO NOTHING", version=str(VERSION))
        [(version,)] = run("SELECT value FROM cru_queue WHERE name = 'version'")
    if int(version) > VERSION:
        raise QueueTooNew(f"the queue {database.place} was made by a newer cru (version {version})", "update cru")
