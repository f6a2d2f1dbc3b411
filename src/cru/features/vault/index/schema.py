"""The tables of the index: SQLite, made from the notes alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cru.core.base.files.regular import PRIVATE, make_private_folder
from cru.core.base.files.sqlite import is_locked, use_write_ahead_log
from cru.features.vault import IndexUnusable

VERSION = 3
"""A file's name has it, so cru of another version uses a file of its own."""
LOCK_SECONDS = 30

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, key TEXT NOT NULL, name_key TEXT NOT NULL,
    title TEXT NOT NULL, title_key TEXT NOT NULL, hash BLOB NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, is_settled INTEGER NOT NULL,
    properties TEXT NOT NULL, tags TEXT NOT NULL, links_hash BLOB NOT NULL, blocks INTEGER NOT NULL, problems TEXT NOT NULL);
CREATE INDEX notes_key ON notes (key);
CREATE INDEX notes_name ON notes (name_key);
CREATE INDEX notes_title ON notes (title_key);
CREATE TABLE files (path TEXT PRIMARY KEY, name_key TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX files_name ON files (name_key);
CREATE TABLE targets (
    id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, key TEXT NOT NULL, name_key TEXT NOT NULL,
    note INTEGER, file TEXT, is_ambiguous INTEGER NOT NULL DEFAULT 0);
CREATE INDEX targets_key ON targets (key);
CREATE INDEX targets_name ON targets (name_key);
CREATE INDEX targets_note ON targets (note);
CREATE TABLE links (
    note INTEGER NOT NULL, at INTEGER NOT NULL, target INTEGER, kind TEXT NOT NULL, heading TEXT NOT NULL, block TEXT NOT NULL,
    alias TEXT NOT NULL, end INTEGER NOT NULL, line INTEGER NOT NULL, PRIMARY KEY (note, at)) WITHOUT ROWID;
CREATE INDEX links_target ON links (target, note);
CREATE TABLE headings (
    note INTEGER NOT NULL, at INTEGER NOT NULL, level INTEGER NOT NULL, text TEXT NOT NULL, key TEXT NOT NULL, line INTEGER NOT NULL,
    PRIMARY KEY (note, at)) WITHOUT ROWID;
CREATE TABLE block_ids (
    note INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, end INTEGER NOT NULL, line INTEGER NOT NULL,
    PRIMARY KEY (note, id)) WITHOUT ROWID;
CREATE TABLE tags (tag TEXT NOT NULL, note INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (tag, note)) WITHOUT ROWID;
CREATE INDEX tags_note ON tags (note);
CREATE TABLE aliases (key TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (key, note)) WITHOUT ROWID;
CREATE INDEX aliases_note ON aliases (note);
CREATE TABLE properties (key TEXT NOT NULL, value TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (key, value, note)) WITHOUT ROWID;
CREATE INDEX properties_note ON properties (note);
CREATE TABLE tasks (
    note INTEGER NOT NULL, n INTEGER NOT NULL, status TEXT NOT NULL, text TEXT NOT NULL, line INTEGER NOT NULL, fields TEXT NOT NULL,
    PRIMARY KEY (note, n)) WITHOUT ROWID;
CREATE INDEX tasks_status ON tasks (status);
CREATE VIRTUAL TABLE texts USING fts5 (title, tags, headings, body, forms, tokenize = "unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE names USING fts5 (title, tags, headings, tokenize = "unicode61 remove_diacritics 2");
"""
"""notes.key, targets.key: keys.path_key; aliases.key: keys.fold; targets.text: keys.full_target; targets.note, targets.file: what it
leads to, NULL if to nothing; links.target: NULL for a place in the note itself;
texts.rowid, names.rowid = notes.id; texts.forms: other forms of
words in body (search/forms.py), those of other columns stand in these; names: the short columns of texts once more, for words that most
notes have; notes.is_settled: 0 if the file may have changed within the same tick of its clock in which it was read."""


def index_file(folder: Path) -> Path:
    return folder / f"notes-{VERSION}.sqlite"


def open_index(path: Path) -> sqlite3.Connection:
    """The index in that file, made if it is missing, and made anew if it is damaged. Raises IndexUnusable."""
    try:
        make_private_folder(path.parent)
        try:
            return _connect(path)
        except sqlite3.DatabaseError as error:
            if is_locked(error):
                raise
            remove_index(path)  # nothing is lost: it is made from the notes
            return _connect(path)
    except (OSError, sqlite3.Error) as error:
        hint = "another process is writing to it: try again" if is_locked(error) else "is the disk full or read-only?"
        raise IndexUnusable(f"the index of the notes cannot be used: {path}: {error}", hint) from error


def remove_index(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")


def _connect(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE))
    connection = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        use_write_ahead_log(connection, LOCK_SECONDS)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA cache_size = -32000")
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All of the block or nothing; other processes wait. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _make_tables(connection: sqlite3.Connection) -> None:
    if _version(connection) == VERSION:
        return
    with transaction(connection):
        version = _version(connection)
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"version {version}")
        if not version:  # nobody else has made them meanwhile
            for statement in _TABLES.strip().split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
