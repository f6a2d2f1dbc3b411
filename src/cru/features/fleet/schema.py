"""The tables in the database: those of Procrastinate, and those of cru that say what its jobs ask and what came of them."""

from __future__ import annotations

from cru.features.fleet.database import Database, Run

_LOCK = 0x637275  # of the advisory lock under which the tables are made

TABLES = (
    """CREATE TABLE IF NOT EXISTS cru_items (
        batch TEXT NOT NULL, id TEXT NOT NULL, line BIGINT NOT NULL, version BIGINT NOT NULL, home TEXT NOT NULL,
        context TEXT NOT NULL, item TEXT NOT NULL, priority INTEGER NOT NULL DEFAULT 0, max_deaths BIGINT NOT NULL,
        attempt BIGINT NOT NULL DEFAULT 1, deaths TEXT NOT NULL DEFAULT '[]', job BIGINT, status TEXT NOT NULL DEFAULT '',
        result TEXT NOT NULL DEFAULT '', ended_at TIMESTAMPTZ,
        provider TEXT NOT NULL DEFAULT '', cost DOUBLE PRECISION NOT NULL DEFAULT 0, PRIMARY KEY (batch, id))""",
    "CREATE INDEX IF NOT EXISTS cru_items_job ON cru_items (job)",
    """CREATE TABLE IF NOT EXISTS cru_fleet_workers (
        id BIGINT PRIMARY KEY REFERENCES procrastinate_workers ON DELETE CASCADE, name TEXT NOT NULL, host TEXT NOT NULL,
        home TEXT NOT NULL, places INTEGER NOT NULL, beat DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS cru_limits (
        provider TEXT PRIMARY KEY, running BIGINT NOT NULL, day_cost DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS cru_files (
        context TEXT NOT NULL, path TEXT NOT NULL, part BIGINT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (context, path, part))""",
)
"""cru_items: see records.BatchItem; home: the id of the home that has its conversation, or queue.SHARED if cru_files has it: the files of
contexts in parts; job: of Procrastinate, the last one that was queued for it; status, result: how it ended, "" if it has not;
provider: of its model, from its start on; cost: US dollars, as far as they are known. cru_limits: 0 is no limit.
cru_fleet_workers: more of Procrastinate's workers; places: items at once; beat: seconds between two signs of life."""


def make_tables(database: Database) -> None:
    """Make what is not there. Raises QueueUnavailable, FleetError."""
    with database.transaction() as run:
        run("SELECT pg_advisory_xact_lock(%(key)s)", key=_LOCK)
        if run("SELECT to_regclass('procrastinate_jobs')") == [(None,)]:
            _make_procrastinate(run)
        for table in TABLES:
            run(table)


def _make_procrastinate(run: Run) -> None:
    from procrastinate.schema import SchemaManager

    run(SchemaManager.get_schema().replace("%", "%%"))
