"""A note as rows of the index."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

import msgspec
from msgspec import Struct

from cru.vault.index.changes import ChangedPart
from cru.vault.keys import fold, full_target, name_key, path_key, written_target
from cru.vault.notes import LinkKind, Note

_OF_NOTE = ("links", "headings", "block_ids", "tags", "properties", "tasks")
_VALUE_LIMIT = 1000
"""Characters of a property that can be searched for."""


class NoteRow(Struct, frozen=True):
    """A note that was read. data: its bytes, b"" if its text is not indexed; is_settled: the file need not be read once more as long as
    its size and time stay."""

    path: str
    note: Note
    data: bytes
    digest: bytes
    size: int
    mtime_ns: int
    is_settled: bool


class StoredNote(Struct, frozen=True):
    """What the index had of a note before."""

    id: int
    title: str
    digest: bytes
    properties: str
    tags: str
    links_hash: bytes


class WrittenNote(Struct, frozen=True):
    """before: what was there, None if it is new; part: what differs, None if it is new or the same; targets: (id, text) that no note had
    linked to."""

    before: StoredNote | None
    part: ChangedPart | None
    targets: tuple[tuple[int, str], ...] = ()


def stored_note(connection: sqlite3.Connection, path: str) -> StoredNote | None:
    sql = "SELECT id, title, hash, properties, tags, links_hash FROM notes WHERE path = ?"
    row = connection.execute(sql, (path,)).fetchone()
    return StoredNote(*row) if row else None


def remove_note(connection: sqlite3.Connection, path: str) -> StoredNote | None:
    """Forget a note; what was known of it, or None. Within a transaction. Links to it are resolved by the caller."""
    before = stored_note(connection, path)
    if before is not None:
        _remove_parts(connection, before.id)
        connection.execute("DELETE FROM notes WHERE id = ?", (before.id,))
    return before


def write_note(connection: sqlite3.Connection, row: NoteRow) -> WrittenNote:
    """Keep a note in place of what was there. Within a transaction. Links are resolved by the caller."""
    before = stored_note(connection, row.path)
    if before is not None and before.digest == row.digest:
        connection.execute(
            "UPDATE notes SET size = ?, mtime_ns = ?, is_settled = ? WHERE id = ?",
            (row.size, row.mtime_ns, row.is_settled, before.id),
        )
        return WrittenNote(before, None)
    note = row.note
    links_hash = _links_hash(note)
    properties, tags = _json(note.properties), _json(note.tags)
    if before is not None:
        _remove_parts(connection, before.id)
        connection.execute("DELETE FROM notes WHERE id = ?", (before.id,))
    key = path_key(row.path)
    # no OR REPLACE: it opens a savepoint, at which FTS5 writes out what it has collected, for every note
    cursor = connection.execute(
        "INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (before.id if before else None, row.path, key, name_key(key), note.title, fold(note.title), row.digest, row.size, row.mtime_ns,
         row.is_settled, properties, tags, links_hash, len(note.blocks), "\n".join(note.problems)),
    )  # fmt: skip
    id = cursor.lastrowid
    assert id is not None
    targets = _write_links(connection, id, row)
    _write_parts(connection, id, row)
    return WrittenNote(before, _changed_part(before, properties, tags, links_hash) if before else None, targets)


def _changed_part(before: StoredNote, properties: str, tags: str, links_hash: bytes) -> ChangedPart:
    if before.properties != properties:
        return ChangedPart.FRONT_MATTER
    if before.tags != tags:
        return ChangedPart.TAGS
    return ChangedPart.LINKS if before.links_hash != links_hash else ChangedPart.CONTENT


def _links_hash(note: Note) -> bytes:
    words = "\n".join(f"{link.kind} {link.target}#{link.heading}^{link.block}|{link.alias}" for link in note.links)
    return blake2b(words.encode(), digest_size=8).digest() if words else b""


def _write_links(connection: sqlite3.Connection, id: int, row: NoteRow) -> tuple[tuple[int, str], ...]:
    folder = row.path.rpartition("/")[0]
    rows, fresh = [], []
    for link in row.note.links:
        target = None
        if link.target:
            text = full_target(link.target, folder, is_markdown=link.kind is LinkKind.MARKDOWN)
            target, is_new = _target_id(connection, text)
            if is_new:
                fresh.append((target, text))
        rows.append((id, link.start, target, link.kind, link.heading, link.block, link.alias, link.end, link.line))
    connection.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    return tuple(fresh)


def _target_id(connection: sqlite3.Connection, text: str) -> tuple[int, bool]:
    known = connection.execute("SELECT id FROM targets WHERE text = ?", (text,)).fetchone()
    if known:
        return known[0], False
    key = path_key(written_target(text).strip("/"))
    cursor = connection.execute(
        "INSERT INTO targets (text, key, name_key) VALUES (?, ?, ?)", (text, key, name_key(key))
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid, True


def _write_parts(connection: sqlite3.Connection, id: int, row: NoteRow) -> None:
    note = row.note
    insert = connection.executemany
    insert(
        "INSERT INTO headings VALUES (?, ?, ?, ?, ?, ?)",
        [(id, each.start, each.level, each.text, fold(each.text), each.line) for each in note.headings],
    )
    insert(
        "INSERT OR IGNORE INTO block_ids VALUES (?, ?, ?, ?, ?, ?)",
        [(id, each.id, each.kind, each.start, each.end, each.line) for each in note.blocks if each.id],
    )
    insert("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", [(fold(name), id, name) for name in note.tags])
    insert("INSERT OR IGNORE INTO properties VALUES (?, ?, ?)", [(key, value, id) for key, value in _searchable(note)])
    insert(
        "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
        [
            (id, n, task.status, task.text, task.line, _json({field.key: field.value for field in task.fields}))
            for n, task in enumerate(note.tasks)
        ],
    )
    names = (id, note.title, " ".join(note.tags), "\n".join(each.text for each in note.headings))
    connection.execute("INSERT INTO names (rowid, title, tags, headings) VALUES (?, ?, ?, ?)", names)
    connection.execute(
        "INSERT INTO texts (rowid, title, tags, headings, body) VALUES (?, ?, ?, ?, ?)",
        (*names, row.data[note.body :].decode(errors="replace")),
    )


def _searchable(note: Note) -> list[tuple[str, str]]:
    """(key, value) of front matter and inline fields, folded; of a list each member."""
    pairs = []
    for key, value in note.properties.items():
        for member in value if isinstance(value, list) else [value]:
            if not isinstance(member, dict | list):
                pairs.append((fold(key), fold(_as_text(member))[:_VALUE_LIMIT]))
    pairs += [(fold(field.key), fold(field.value)[:_VALUE_LIMIT]) for field in note.fields]
    return pairs


def _as_text(value: object) -> str:
    return _json(value) if value is None or isinstance(value, bool) else str(value)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _remove_parts(connection: sqlite3.Connection, id: int) -> None:
    for table in _OF_NOTE:
        connection.execute(f"DELETE FROM {table} WHERE note = ?", (id,))
    connection.execute("DELETE FROM texts WHERE rowid = ?", (id,))
    connection.execute("DELETE FROM names WHERE rowid = ?", (id,))
