"""Full-text search: the best notes first, by BM25 with the title counting most."""

from __future__ import annotations

import sqlite3
from itertools import islice
from typing import Any

from msgspec import Struct

from cru.features.vault import BadQuery
from cru.features.vault.search.forms import other_forms, place_pattern
from cru.features.vault.search.query import Filter, FilterKind, SearchQuery, all_of

_WEIGHTS = "10.0, 5.0, 3.0, 1.0, 1.0"
"""Of title, tags, headings, body, and other forms of words of the body."""
BEGIN, END = "\x02", "\x03"
"""Around what was found, in a snippet."""
MOST_RANKED = 3_000
"""Notes of which a search looks for the best. If more have its words, those with the words in title, tags or headings come first, and
the others as they are found: comparing all would take 0.1 s at 100,000 notes (docs/decisions/vault.md)."""
_SNIPPET_WORDS = 24
_BEGINNING = 400
"""Characters of a note's text from which the snippet is taken if nothing in it was looked for."""
_LONG = 20_000
"""Characters of a text from which on its snippet is not made by FTS5, which compares each place of a word with each other one: a note of
4 MB that repeats a word took hours."""
_WHOLE = "\x01"
_WHOLE_TEXT = "char(1) || texts.body"
_SNIPPET = f"""CASE WHEN length(texts.body) > {_LONG} THEN {_WHOLE_TEXT}
    ELSE snippet(texts, 3, '{BEGIN}', '{END}', '…', {_SNIPPET_WORDS}) END"""


class Hit(Struct, frozen=True):
    """A note that was found. score: the higher the better, comparable within one search only, 0 if it was not compared;
    snippet: with BEGIN and END around words."""

    path: str
    title: str
    score: float
    snippet: str


def search(connection: sqlite3.Connection, query: SearchQuery, limit: int = 20) -> list[Hit]:
    """Raises BadQuery."""
    conditions, values = filter_conditions(query.filters)
    if not query.match:
        if not query.filters:
            raise BadQuery("there is nothing to look for", "give a word, #tag, path: or key:value")
        sql = f"SELECT path, title, 0.0, '' FROM notes AS n WHERE {conditions} ORDER BY mtime_ns DESC, path LIMIT ?"
        return [Hit(*row) for row in connection.execute(sql, (*values, limit))]
    try:
        rows = _Search(connection, query, f"AND {conditions}" if conditions else "", values).best(limit)
    except sqlite3.OperationalError as error:
        raise BadQuery(
            f"the search cannot be understood: {error}", 'words, "a phrase", start*, -not, #tag, key:value'
        ) from error
    return [Hit(path, title, score, _shown(snippet, query.words)) for path, title, score, snippet in rows]


_Row = tuple[str, str, float, str]


class _Search:
    """conditions, values: of the filters, in SQL over `notes AS n`"""

    def __init__(self, connection: sqlite3.Connection, query: SearchQuery, conditions: str, values: list[Any]) -> None:
        self._connection = connection
        self._query = query
        self._conditions = conditions
        self._values = values
        # FTS5 marks no words that it found by another form, so their snippet is made here
        self._snippet = _WHOLE_TEXT if other_forms(query.words) else _SNIPPET

    def best(self, limit: int) -> list[_Row]:
        match = self._query.match
        if self._count(match, MOST_RANKED + 1) > MOST_RANKED:
            return self._of_common_words(limit)
        return self._ranked(match, limit)

    def _count(self, match: str, most: int, table: str = "texts") -> int:
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
        return int(self._connection.execute(sql, (match, most)).fetchone()[0])

    def _ranked(self, match: str, limit: int) -> list[_Row]:
        sql = f"""
            SELECT n.path, n.title, -rank, {self._snippet} FROM texts JOIN notes AS n ON n.id = texts.rowid
            WHERE texts MATCH ? AND rank MATCH 'bm25({_WEIGHTS})' {self._conditions} ORDER BY rank LIMIT ?"""
        return self._connection.execute(sql, (match, *self._values, limit)).fetchall()

    def _of_common_words(self, limit: int) -> list[_Row]:
        rare = self._rarest()
        rows = self._of_rare_words(all_of([rare]), limit) if rare else self._named(limit)
        if len(rows) < limit:
            paths = {row[0] for row in rows}
            others = (row for row in self._unranked(limit + len(rows)) if row[0] not in paths)
            rows += islice(others, limit - len(rows))
        return rows

    def _of_rare_words(self, rare: str, limit: int) -> list[_Row]:
        """The best by words of which not all need be found. Unlike `rank`, `bm25` is called for those alone that the whole query finds,
        and `snippet` for those that are shown."""
        within = "+texts.rowid IN (SELECT rowid FROM texts WHERE texts MATCH ?)"
        notes = "texts JOIN notes AS n ON n.id = texts.rowid"
        sql = f"""
            SELECT texts.rowid, -bm25(texts, {_WEIGHTS}) AS score FROM {notes if self._conditions else "texts"}
            WHERE texts MATCH ? AND {within} {self._conditions} ORDER BY score DESC LIMIT ?"""
        whole = f"({rare}) AND ({self._query.match})"
        best = dict(self._connection.execute(sql, (rare, whole, *self._values, limit)).fetchall())
        shown = f"""
            SELECT texts.rowid, n.path, n.title, {self._snippet} FROM {notes}
            WHERE texts MATCH ? AND +texts.rowid IN (SELECT value FROM json_each(?))"""
        rows = {row[0]: row[1:] for row in self._connection.execute(shown, (rare, str(list(best))))}
        return [(path, title, score, snippet) for id, score in best.items() for path, title, snippet in [rows[id]]]

    def _rarest(self) -> list[str]:
        """Of words of which only one need be found those that are in the fewest notes, as far as these can be compared."""
        counts = sorted((self._count(each, MOST_RANKED + 1), each) for term in self._query.terms for each in term)
        rarest, notes = [], 0
        for count, each in counts:
            notes += count
            if notes > MOST_RANKED:
                break
            rarest.append(each)
        return rarest

    def _named(self, limit: int) -> list[_Row]:
        """Those with all words in title, tags and headings."""
        match, within, excluded = all_of(self._query.terms), "", []
        if match != self._query.match:
            within = "AND +n.id IN (SELECT rowid FROM texts WHERE texts MATCH ?)"
            excluded = [f"{{title tags headings}} : ({match}) AND ({self._query.match})"]
        are_many = self._count(match, MOST_RANKED + 1, "names") > MOST_RANKED
        sql = f"""
            SELECT n.path, n.title, {"0.0" if are_many else "-rank"},
                (SELECT substr(body, 1, {_BEGINNING}) FROM texts WHERE rowid = n.id)
            FROM names JOIN notes AS n ON n.id = names.rowid
            WHERE names MATCH ? {"" if are_many else f"AND rank MATCH 'bm25({_WEIGHTS})'"} {within} {self._conditions}
            ORDER BY {"names.rowid DESC" if are_many else "rank"} LIMIT ?"""
        rows = self._connection.execute(sql, (match, *excluded, *self._values, limit)).fetchall()
        return [(path, title, score, _first_words(body)) for path, title, score, body in rows]

    def _unranked(self, limit: int) -> list[_Row]:
        """Those that the index met last."""
        sql = f"""
            SELECT n.path, n.title, 0.0, {self._snippet} FROM texts JOIN notes AS n ON n.id = texts.rowid
            WHERE texts MATCH ? {self._conditions} ORDER BY texts.rowid DESC LIMIT ?"""
        return self._connection.execute(sql, (self._query.match, *self._values, limit)).fetchall()


def _shown(snippet: str, words: str) -> str:
    """On one line; of a long text the part where a word that was looked for is first."""
    if snippet.startswith(_WHOLE):
        word = place_pattern(words)
        first = word.search(snippet)
        start = max(1, first.start() - _BEGINNING // 8) if first else 1
        part = _first_words(snippet[start : start + _BEGINNING])
        snippet = ("…" if start > 1 else "") + word.sub(lambda match: f"{BEGIN}{match[0]}{END}", part)
    return " ".join(snippet.split())


def _first_words(text: str) -> str:
    words = text.split()
    return " ".join(words[:_SNIPPET_WORDS]) + ("…" if len(words) > _SNIPPET_WORDS else "")


def filter_conditions(filters: tuple[Filter, ...]) -> tuple[str, list[Any]]:
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
