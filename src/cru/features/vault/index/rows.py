"""A note as rows of the index."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from cru.features.vault.index.changes import ChangedPart
from cru.features.vault.keys import fold, full_target, name_key, path_key, written_target
from cru.features.vault.notes import LinkKind, Note, read_aliases
from cru.features.vault.search.forms import other_forms, with_forms

_INSERT = {
    "notes": "INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "targets": "INSERT INTO targets (id, text, key, name_key) VALUES (?, ?, ?, ?)",
    "links": "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "headings": "INSERT INTO headings VALUES (?, ?, ?, ?, ?, ?)",
    "block_ids": "INSERT OR IGNORE INTO block_ids VALUES (?, ?, ?, ?, ?, ?)",
    "tags": "INSERT OR IGNORE INTO tags VALUES (?, ?, ?)",
    "aliases": "INSERT OR IGNORE INTO aliases VALUES (?, ?)",
    "properties": "INSERT OR IGNORE INTO properties VALUES (?, ?, ?)",
    "tasks": "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
    "names": "INSERT INTO names (rowid, title, tags, headings) VALUES (?, ?, ?, ?)",
    "texts": "INSERT INTO texts (rowid, title, tags, headings, body, forms) VALUES (?, ?, ?, ?, ?, ?)",
}
_KEYS = {
    "links": "note", "headings": "note", "block_ids": "note", "tags": "note", "aliases": "note", "properties": "note", "tasks": "note",
    "names": "rowid", "texts": "rowid", "notes": "id",
}  # fmt: skip
"""Of what belongs to a note the column that names it."""
_first = itemgetter(0)
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

    @property
    def titles(self) -> tuple[str, ...]:
        """The title and the aliases."""
        return self.title, *read_aliases(msgspec.json.decode(self.properties))


class WrittenNote(Struct, frozen=True):
    """before: what was there, None if it is new; part: what differs, None if it is new or the same."""

    before: StoredNote | None
    part: ChangedPart | None


class NoteWriter:
    """Writes notes within one transaction. What they consist of is collected and written by `flush`, table by table in the order of ids:
    FTS5 writes out what it has collected whenever ids do not ascend.

    new_targets: (id, text) that no note had linked to; the caller resolves them
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        sql = "SELECT (SELECT max(id) FROM notes), (SELECT max(id) FROM targets)"
        self._last_note, self._last_target = (last or 0 for last in connection.execute(sql).fetchone())
        self._targets: dict[str, int] = {}
        self._removed: list[int] = []
        self._same: list[tuple[int, int, bool, int]] = []
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _INSERT}
        self.new_targets: list[tuple[int, str]] = []

    def remove(self, path: str) -> StoredNote | None:
        """Forget a note; what was known of it, or None. Links to it are resolved by the caller."""
        before = self._stored(path)
        if before is not None:
            self._removed.append(before.id)
        return before

    def add(self, row: NoteRow) -> WrittenNote:
        """Keep a note in place of what was there. Links to it are resolved by the caller."""
        before = self._stored(row.path)
        if before is not None and before.digest == row.digest:
            self._same.append((row.size, row.mtime_ns, row.is_settled, before.id))
            return WrittenNote(before, None)
        if before is not None:
            self._removed.append(before.id)
            id = before.id
        else:
            id = self._last_note = self._last_note + 1
        note, key = row.note, path_key(row.path)
        links_hash = _links_hash(note)
        properties, tags = _json(note.properties), _json(note.tags)
        self._rows["notes"].append(
            (id, row.path, key, name_key(key), note.title, fold(note.title), row.digest, row.size, row.mtime_ns, row.is_settled,
             properties, tags, links_hash, len(note.blocks), "\n".join(note.problems))
        )  # fmt: skip
        self._add_links(id, row)
        self._add_parts(id, row)
        return WrittenNote(before, _changed_part(before, properties, tags, links_hash) if before else None)

    def flush(self) -> None:
        many = self._connection.executemany
        removed = [(id,) for id in sorted(self._removed)]
        for table, key in _KEYS.items():
            many(f"DELETE FROM {table} WHERE {key} = ?", removed)
        many("UPDATE notes SET size = ?, mtime_ns = ?, is_settled = ? WHERE id = ?", self._same)
        for table, sql in _INSERT.items():
            many(sql, sorted(self._rows[table], key=_first))

    def _stored(self, path: str) -> StoredNote | None:
        sql = "SELECT id, title, hash, properties, tags, links_hash FROM notes WHERE path = ?"
        row = self._connection.execute(sql, (path,)).fetchone()
        return StoredNote(*row) if row else None

    def _add_links(self, id: int, row: NoteRow) -> None:
        folder = row.path.rpartition("/")[0]
        for link in row.note.links:
            target = None
            if link.target:
                target = self._target_id(full_target(link.target, folder, is_markdown=link.kind is LinkKind.MARKDOWN))
            self._rows["links"].append(
                (id, link.start, target, link.kind, link.heading, link.block, link.alias, link.end, link.line)
            )

    def _target_id(self, text: str) -> int:
        id = self._targets.get(text)
        if id is None:
            known = self._connection.execute("SELECT id FROM targets WHERE text = ?", (text,)).fetchone()
            id = self._targets[text] = known[0] if known else self._add_target(text)
        return id

    def _add_target(self, text: str) -> int:
        id = self._last_target = self._last_target + 1
        key = path_key(written_target(text).strip("/"))
        self._rows["targets"].append((id, text, key, name_key(key)))
        self.new_targets.append((id, text))
        return id

    def _add_parts(self, id: int, row: NoteRow) -> None:
        note, rows = row.note, self._rows
        rows["headings"] += [
            (id, each.start, each.level, each.text, fold(each.text), each.line) for each in note.headings
        ]
        rows["block_ids"] += [
            (id, each.id, each.kind, each.start, each.end, each.line) for each in note.blocks if each.id
        ]
        rows["tags"] += [(fold(name), id, name) for name in note.tags]
        rows["properties"] += [(key, value, id) for key, value in _searchable(note)]
        rows["tasks"] += [
            (id, n, task.status, task.text, task.line, _json({field.key: field.value for field in task.fields}))
            for n, task in enumerate(note.tasks)
        ]
        rows["aliases"] += [(fold(alias), id) for alias in note.aliases]
        titles = "\n".join((note.title, *note.aliases))
        columns = (titles, " ".join(note.tags), "\n".join(each.text for each in note.headings))
        names = (id, *map(with_forms, columns))
        body = row.data[note.body :].decode(errors="replace")
        rows["names"].append(names)
        rows["texts"].append((*names, body, other_forms(body)))


def _changed_part(before: StoredNote, properties: str, tags: str, links_hash: bytes) -> ChangedPart:
    if before.properties != properties:
        return ChangedPart.FRONT_MATTER
    if before.tags != tags:
        return ChangedPart.TAGS
    return ChangedPart.LINKS if before.links_hash != links_hash else ChangedPart.CONTENT


def _links_hash(note: Note) -> bytes:
    words = "\n".join(f"{link.kind} {link.target}#{link.heading}^{link.block}|{link.alias}" for link in note.links)
    return blake2b(words.encode(), digest_size=8).digest() if words else b""


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
