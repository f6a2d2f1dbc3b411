"""Files of SQLite that several processes open at once."""

from __future__ import annotations

import sqlite3
import time

INTERVAL = 0.01
"""Seconds between tries."""
_PRIMARY = 0xFF
"""The part of an error's code that says what kind it is (SQLite, "Result and Error Codes")."""


def use_write_ahead_log(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch the file to `journal_mode = WAL`. SQLite refuses that at once, whatever the connection's timeout, while another one that has
    just made the file writes to it. Raises sqlite3.Error, of a lock only after that time."""
    end = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > end:
                raise
        time.sleep(INTERVAL)


def is_locked(error: Exception) -> bool:
    """Whether another connection is at work on the file."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)  # errors of the module itself have none
    return isinstance(error, sqlite3.OperationalError) and code & _PRIMARY == sqlite3.SQLITE_BUSY
