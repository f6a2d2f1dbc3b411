"""Full-text search: the best notes first, by BM25 with the title counting most."""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec import Struct

from cru.vault import BadQuery
from cru.vault.search.query import Filter, FilterKind, SearchQuery

WEIGHTS = "bm25(10.0, 5.0, 3.0, 1.0)"
"""Of title, tags, headings and body."""
BEGIN, END = "\x02", "\x03"
"""Around what was found, in a snippet."""
_SNIPPET_WORDS = 24


class Hit(Struct, frozen=True):
    """A note that was found. score: the higher the better, comparable within one search only; snippet: with BEGIN and END around words."""

    path: str
    title: str
    score: float
    snippet: str


def search(connection: sqlite3.Connection, query: SearchQuery, limit: int = 20) -> list[Hit]:
    """Raises BadQuery."""
    conditions, values = _conditions(query.filters)
    if not query.match:
        if not query.filters:
            raise BadQuery("there is nothing to look for", "give a word, #tag, path: or key:value")
        sql = f"SELECT path, title, 0.0, '' FROM notes AS n WHERE {conditions} ORDER BY mtime_ns DESC, path LIMIT ?"
        return [Hit(*row) for row in connection.execute(sql, (*values, limit))]
    sql = f"""
        SELECT n.path, n.title, -rank, snippet(texts, 3, '{BEGIN}', '{END}', '…', {_SNIPPET_WORDS})
        FROM texts JOIN notes AS n ON n.id = texts.rowid
        WHERE texts MATCH ? AND rank MATCH '{WEIGHTS}' {"AND " + conditions if conditions else ""} ORDER BY rank LIMIT ?"""
    try:
        rows = connection.execute(sql, (query.match, *values, limit)).fetchall()
    except sqlite3.OperationalError as error:
        raise BadQuery(
            f"the search cannot be understood: {error}", 'words, "a phrase", start*, -not, #tag, key:value'
        ) from error
    return [Hit(path, title, score, " ".join(snippet.split())) for path, title, score, snippet in rows]


def _conditions(filters: tuple[Filter, ...]) -> tuple[str, list[Any]]:
    """SQL over `notes AS n`."""
    parts: list[str] = []
    values: list[Any] = []
    for each in filters:
        condition, bound = _condition(each)
        parts.append(f"NOT {condition}" if each.is_not else condition)
        values += bound
    return " AND ".join(parts), values


def _condition(each: Filter) -> tuple[str, list[Any]]:
    if each.kind is FilterKind.TAG:
        below = f"{each.value}/"
        sql = "EXISTS (SELECT 1 FROM tags WHERE note = n.id AND (tag = ? OR (tag >= ? AND tag < ?)))"
        return sql, [each.value, below, below[:-1] + "0"]  # "0" follows "/"
    if each.kind is FilterKind.PATH:
        return "(substr(n.key, 1, ?) = ?)", [len(each.value), each.value]
    values: list[Any] = [each.key, each.value]
    return "EXISTS (SELECT 1 FROM properties WHERE note = n.id AND key = ? AND value = ?)", values
