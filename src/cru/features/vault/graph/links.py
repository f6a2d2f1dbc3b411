"""How notes hang together. A note is its id in the index; a link counts once, however often it is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from cru.features.vault.keys import written_target
from cru.features.vault.notes import LinkKind

_AT_ONCE = 500  # ids in one statement
EDGES: tuple[str, ...] = tuple(LinkKind)
"""What an edge may be."""

_OUT = "SELECT l.note, t.note FROM links AS l JOIN targets AS t ON t.id = l.target WHERE l.note IN ({ids}) AND t.note IS NOT NULL"
_IN = "SELECT t.note, l.note FROM targets AS t JOIN links AS l ON l.target = t.id WHERE t.note IN ({ids})"


class DanglingLink(Struct, frozen=True):
    """A link to nothing. path: of the note that has it; target: as it is written"""

    path: str
    line: int
    target: str


def outlinks(connection: sqlite3.Connection, ids: Iterable[int], edges: Collection[str] = EDGES) -> dict[int, set[int]]:
    """Of each of these notes the notes that it links to."""
    return _edges(connection, _OUT, ids, edges)


def backlinks(
    connection: sqlite3.Connection, ids: Iterable[int], edges: Collection[str] = EDGES
) -> dict[int, set[int]]:
    """Of each of these notes the notes that link to it."""
    return _edges(connection, _IN, ids, edges)


def both_ways(
    connection: sqlite3.Connection, ids: Iterable[int], edges: Collection[str] = EDGES
) -> dict[int, set[int]]:
    linked = outlinks(connection, ids, edges)
    for id, others in backlinks(connection, ids, edges).items():
        linked[id] |= others
    return linked


def _edges(connection: sqlite3.Connection, sql: str, ids: Iterable[int], edges: Collection[str]) -> dict[int, set[int]]:
    linked: dict[int, set[int]] = {id: set() for id in ids}
    kinds = "" if set(edges) == set(EDGES) else f" AND l.kind IN ({', '.join('?' * len(edges))})"
    for part in _parts(list(linked)):
        statement = sql.format(ids=", ".join("?" * len(part))) + kinds
        for id, other in connection.execute(statement, (*part, *(edges if kinds else ()))):
            if other != id:
                linked[id].add(other)
    return linked


def _parts(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), _AT_ONCE):
        yield ids[start : start + _AT_ONCE]


def neighbors(connection: sqlite3.Connection, start: int, depth: int = 1) -> set[int]:
    """The notes that at most so many links, either way, lie between it and; without itself."""
    seen = {start}
    edge = {start}
    for _ in range(depth):
        edge = set().union(*both_ways(connection, edge).values()) - seen
        if not edge:
            break
        seen |= edge
    return seen - {start}


def shortest_path(connection: sqlite3.Connection, start: int, end: int, longest: int = 20) -> list[int]:
    """The notes from one to the other over links in either way, both included; [] if there is no way of at most so many links."""
    came_from: dict[int, int] = {start: start}
    edge = [start]
    for _ in range(longest):
        if end in came_from or not edge:
            break
        linked = both_ways(connection, edge)
        edge = []
        for id in sorted(linked):
            for other in sorted(linked[id]):
                if other not in came_from:
                    came_from[other] = id
                    edge.append(other)
    if end not in came_from:
        return []
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def orphans(connection: sqlite3.Connection) -> list[int]:
    """Notes that link to no other note, and that no other note links to; by path."""
    sql = """
        SELECT id FROM notes AS n WHERE
            NOT EXISTS (SELECT 1 FROM links AS l JOIN targets AS t ON t.id = l.target WHERE l.note = n.id AND t.note != n.id)
            AND NOT EXISTS (SELECT 1 FROM targets AS t JOIN links AS l ON l.target = t.id WHERE t.note = n.id AND l.note != n.id)
        ORDER BY path"""
    return [id for (id,) in connection.execute(sql)]


def dangling(connection: sqlite3.Connection) -> list[DanglingLink]:
    """By path and line."""
    sql = """
        SELECT n.path, l.line, t.text FROM targets AS t JOIN links AS l ON l.target = t.id JOIN notes AS n ON n.id = l.note
        WHERE t.note IS NULL AND t.file IS NULL ORDER BY n.path, l.line, t.text"""
    return [DanglingLink(path, line, written_target(text)) for path, line, text in connection.execute(sql)]


def tags(connection: sqlite3.Connection) -> dict[str, list[int]]:
    """Each tag as it is first written, and the notes that have it."""
    by_tag: dict[str, tuple[str, list[int]]] = {}
    for tag, name, note in connection.execute("SELECT tag, name, note FROM tags ORDER BY tag, note"):
        by_tag.setdefault(tag, (name, []))[1].append(note)
    return dict(by_tag.values())
