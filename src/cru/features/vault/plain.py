"""Notes in plain types, in the shape that scripts, the model and `--json` are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from cru.features.vault.index.records import NoteRecord
from cru.features.vault.search.full_text import BEGIN, END, Hit
from cru.features.vault.vault import Vault

_STRIP = str.maketrans("", "", BEGIN + END)


def plain_notes(vault: Vault, notes: Sequence[NoteRecord]) -> list[dict[str, Any]]:
    """{path, title, content_hash, tags, links_to, properties, updated_at, has_embedding} of each. links_to: paths of notes; updated_at:
    RFC 3339, None if it is not known; has_embedding: whether a search by meaning finds it."""
    linked = vault.linked(note.id for note in notes)
    others = {id for ids in linked.values() for id in ids}
    paths = {note.id: note.path for note in (*notes, *vault.by_id(others - linked.keys()))}
    embedded = vault.embedded(linked)
    return [_plain(note, sorted(paths[id] for id in linked[note.id]), note.id in embedded) for note in notes]


def plain_note(vault: Vault, note: NoteRecord) -> dict[str, Any]:
    return plain_notes(vault, [note])[0]


def plain_rows(vault: Vault, rows: Iterable[Any]) -> list[Any]:
    """The result of a graph query: notes, or columns of which some may be notes."""
    rows = list(rows)
    notes = {row.id: row for row in rows if isinstance(row, NoteRecord)}
    for row in rows:
        if isinstance(row, dict):
            notes |= {value.id: value for value in row.values() if isinstance(value, NoteRecord)}
    plain = dict(zip(notes, plain_notes(vault, list(notes.values())), strict=True))

    def of(value: Any) -> Any:
        return plain[value.id] if isinstance(value, NoteRecord) else value

    return [{key: of(value) for key, value in row.items()} if isinstance(row, dict) else of(row) for row in rows]


def plain_hit(hit: Hit) -> dict[str, Any]:
    """{path, title, score, snippet}"""
    return {
        "path": hit.path,
        "title": hit.title,
        "score": round(hit.score, 3),
        "snippet": hit.snippet.translate(_STRIP),
    }


def _plain(note: NoteRecord, links_to: list[str], has_embedding: bool) -> dict[str, Any]:
    at = note.updated_at
    return {
        "path": note.path,
        "title": note.title,
        "content_hash": note.digest.hex(),
        "tags": note.tags,
        "links_to": links_to,
        "properties": note.properties,
        "updated_at": None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
        "has_embedding": has_embedding,
    }
