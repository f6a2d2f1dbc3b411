"""Answers a GraphQuery from the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from cru.features.vault import BadQuery
from cru.features.vault.graph.links import backlinks, both_ways, outlinks
from cru.features.vault.graph.query import Condition, Direction, EdgePattern, GraphQuery, NodePattern, Operator
from cru.features.vault.index.records import NoteRecord, note_by_id
from cru.features.vault.index.resolve import resolve
from cru.features.vault.keys import fold

MOST_ROWS = 100_000
"""Ways through the graph that one query may follow."""
_FOLLOW = {Direction.OUT: outlinks, Direction.IN: backlinks, Direction.BOTH: both_ways}
_COMPARE: dict[Operator, Callable[[str, str], bool]] = {
    Operator.EQUAL: lambda left, right: left == right,
    Operator.CONTAINS: lambda left, right: right in left,
    Operator.STARTS_WITH: lambda left, right: left.startswith(right),
    Operator.ENDS_WITH: lambda left, right: left.endswith(right),
}
Row = tuple[int, ...]


def run_graph_query(connection: sqlite3.Connection, query: GraphQuery) -> list[NoteRecord] | list[dict[str, Any]]:
    """Notes by path, or a dict a row if the query returns columns. Its jq is left to the caller. Raises BadQuery."""
    return _QueryRun(connection, query).result()


class _QueryRun:
    def __init__(self, connection: sqlite3.Connection, query: GraphQuery) -> None:
        self._connection = connection
        self._query = query
        self._notes: dict[int, NoteRecord] = {}

    def result(self) -> list[NoteRecord] | list[dict[str, Any]]:
        query = self._query
        rows: list[Row] = [(id,) for id in self._begin(query.nodes[0])]
        rows = self._filtered(rows, 0)
        for at, edge in enumerate(query.edges, 1):
            ends = self._ends(edge, {row[-1] for row in rows})
            rows = self._filtered(self._joined(rows, ends, query.nodes[at]), at)
        if not query.returned:
            notes = sorted({row[-1] for row in rows}, key=lambda id: self._note(id).path)
            return [self._note(id) for id in notes[: query.limit]]
        return self._columns(rows)

    def _note(self, id: int) -> NoteRecord:
        if id not in self._notes:
            self._notes[id] = note_by_id(self._connection, id)
        return self._notes[id]

    def _begin(self, node: NodePattern) -> list[int]:
        if node.named:
            note = resolve(self._connection, node.named).note
            return [] if note is None else [note]
        title = next(
            (str(value) for key, value in node.properties if key == "title"), None
        ) or self._title_of_conditions(node)
        if title is not None:
            return [
                id for (id,) in self._connection.execute("SELECT id FROM notes WHERE title_key = ?", (fold(title),))
            ]
        return [id for (id,) in self._connection.execute("SELECT id FROM notes ORDER BY path")]

    def _title_of_conditions(self, node: NodePattern) -> str | None:
        equal = (each for each in self._query.conditions if each.operator is Operator.EQUAL and each.key == "title")
        return next((str(each.value) for each in equal if each.node == node.name), None)

    def _ends(self, edge: EdgePattern, starts: set[int]) -> dict[int, set[int]]:
        """Of each start the notes that so many links away, by the shortest way, an edge leads to."""
        follow = _FOLLOW[edge.direction]
        if (edge.least, edge.most) == (1, 1):
            return follow(self._connection, starts, edge.kinds)
        return {start: self._reach(start, edge) for start in starts}

    def _reach(self, start: int, edge: EdgePattern) -> set[int]:
        follow = _FOLLOW[edge.direction]
        seen = {start}
        level = {start}
        reached = set(level) if edge.least == 0 else set()
        for distance in range(1, edge.most + 1):
            level = set().union(*follow(self._connection, level, edge.kinds).values()) - seen
            if not level:
                break
            seen |= level
            if distance >= edge.least:
                reached |= level
        return reached

    def _joined(self, rows: Iterable[Row], ends: dict[int, set[int]], node: NodePattern) -> list[Row]:
        same = next(
            (at for at, each in enumerate(self._query.nodes) if node.name and each.name == node.name),
            len(self._query.nodes),
        )
        joined: list[Row] = []
        for row in rows:
            for end in sorted(ends.get(row[-1], ())):
                if same >= len(row) or row[same] == end:  # a name that stands twice is one note
                    joined.append((*row, end))
            if len(joined) > MOST_ROWS:
                raise BadQuery(f"the query has more than {MOST_ROWS:,} results", "name a title, or fewer links at once")
        return joined

    def _filtered(self, rows: list[Row], at: int) -> list[Row]:
        node = self._query.nodes[at]
        conditions = [Condition(node.name, key, Operator.EQUAL, value) for key, value in node.properties]
        conditions += [each for each in self._query.conditions if each.node == node.name]
        if not conditions:
            return rows
        return [row for row in rows if all(_holds(self._note(row[at]), each) for each in conditions)]

    def _columns(self, rows: list[Row]) -> list[dict[str, Any]]:
        places = {node.name: at for at, node in reversed(list(enumerate(self._query.nodes))) if node.name}
        result: list[dict[str, Any]] = []
        for row in rows:
            result.append(
                {item.name: _value(self._note(row[places[item.node]]), item.key) for item in self._query.returned}
            )
            if len(result) == self._query.limit:
                break
        return result


def _value(note: NoteRecord, key: str) -> Any:
    if not key:
        return note
    if key in ("path", "title", "tags"):
        return getattr(note, key)
    return note.properties.get(key)


def _holds(note: NoteRecord, condition: Condition) -> bool:
    """Text is compared without regard to case; a list has what one of its members is."""
    value = _value(note, condition.key)
    if condition.operator is Operator.UNEQUAL:
        return not _is(Operator.EQUAL, value, condition.value)
    return _is(condition.operator, value, condition.value)


def _is(operator: Operator, value: Any, expected: Any) -> bool:
    if isinstance(value, list):
        exact = Operator.EQUAL if operator is Operator.CONTAINS else operator
        return any(_is(exact, member, expected) for member in value)
    if isinstance(value, str) and isinstance(expected, str):
        return _COMPARE[operator](fold(value), fold(expected))
    return operator is Operator.EQUAL and value is not None and value == expected
