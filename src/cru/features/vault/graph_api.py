"""`cru.graph` on the vault: notes by title or path, and queries. The helpers on a table of one's own are in graph.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from cru.core.api import jq
from cru.core.api.arguments import text, whole
from cru.features.vault import NoSuchNote
from cru.features.vault import api as notes
from cru.features.vault.plain import plain_notes, plain_rows

if TYPE_CHECKING:
    from cru.features.vault.index.records import NoteRecord
    from cru.features.vault.vault import Vault

Record = dict[str, Any]


async def note_get(path: str) -> Record | None:
    """graph.note_get(path) -> the note, or nil. Raises NamespaceError.

    Example: cru.graph.note_get("Home.md") --> nil
    """
    return await notes.get(text("cru.graph.note_get", "path", path))


async def note_list(limit: int | None = None) -> list[Record]:
    """graph.note_list(limit?) -> the notes by path. Raises NamespaceError.

    Example: #cru.graph.note_list() --> 0
    """
    return await notes.list_(limit)


async def db_find(title: str) -> Record | None:
    """graph.db_find(title) -> the note that a link with this text leads to, or nil. Raises NamespaceError.

    Example: cru.graph.db_find("Home") --> nil
    """
    rows = await _of_title("graph.db_find", title, lambda vault, note: [note])
    return rows[0] if rows else None


async def db_outlinks(title: str) -> list[Record]:
    """graph.db_outlinks(title) -> the notes that it links to. Raises NamespaceError.

    Example: #cru.graph.db_outlinks("Home") --> 0
    """
    return await _of_title("graph.db_outlinks", title, lambda vault, note: vault.outlinks(note.id))


async def db_inlinks(title: str) -> list[Record]:
    """graph.db_inlinks(title) -> the notes that link to it. Raises NamespaceError.

    Example: #cru.graph.db_inlinks("Home") --> 0
    """
    return await _of_title("graph.db_inlinks", title, lambda vault, note: vault.backlinks(note.id))


async def db_neighbors(title: str) -> list[Record]:
    """graph.db_neighbors(title) -> both. Raises NamespaceError.

    Example: #cru.graph.db_neighbors("Home") --> 0
    """
    return await _of_title("graph.db_neighbors", title, lambda vault, note: vault.neighbors(note.id))


async def db_query(query: str) -> list[Any]:
    """graph.db_query(query) -> notes, or a table a row; the forms are those of `cru vault query`. Raises NamespaceError
    ("Graph query error: …").

    Example: #cru.graph.db_query('outlinks("Home")') --> 0
    """
    words = text("cru.graph.db_query", "query", query)

    def look(vault: Vault) -> list[Any]:
        rows, filters = vault.query(words)
        results = plain_rows(vault, rows)
        if not filters:
            return results
        return jq.query("Graph query error", msgspec.json.encode(results), filters)

    return await notes.ask("graph.db_query", look, [], "Graph query error")


async def fast_outlinks(path: str) -> list[str]:
    """graph.fast_outlinks(path) -> paths, as vault.outlinks. Raises NamespaceError.

    Example: #cru.graph.fast_outlinks("Home.md") --> 0
    """
    return await notes.outlinks(path)


async def fast_backlinks(path: str) -> list[str]:
    """graph.fast_backlinks(path) -> paths, as vault.backlinks. Raises NamespaceError.

    Example: #cru.graph.fast_backlinks("Home.md") --> 0
    """
    return await notes.backlinks(path)


async def fast_neighbors(path: str, depth: int = 1) -> list[str]:
    """graph.fast_neighbors(path, depth=1) -> paths, as vault.neighbors. Raises NamespaceError.

    Example: #cru.graph.fast_neighbors("Home.md", 2) --> 0
    """
    return await notes.neighbors(path, whole("cru.graph.fast_neighbors", "depth", depth, 0))


async def _of_title(name: str, title: str, follow: Callable[[Vault, NoteRecord], list[NoteRecord]]) -> list[Record]:
    """A title that no note has is linked to nothing."""
    named = text(f"cru.{name}", "title", title)

    def look(vault: Vault) -> list[Record]:
        try:
            note = vault.find(named)
        except NoSuchNote:
            return []
        return plain_notes(vault, follow(vault, note))

    return await notes.ask(name, look, [])
