"""How notes hang together, and the three forms of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.features.vault.support import open_vault

from cru.features.vault import BadQuery
from cru.features.vault.graph import links
from cru.features.vault.graph.parse import parse_graph_query
from cru.features.vault.graph.run import run_graph_query
from cru.features.vault.index.index import NoteIndex
from cru.features.vault.index.records import note_by_id

NOTES = {
    "A.md": "---\nstatus: open\ntags: [x]\n---\n[[B]] [[B|again]] ![[C]] [[Nothing]]",
    "B.md": "---\nstatus: done\n---\n[[C]] [[B]]",
    "C.md": "[d](D.md)",
    "D.md": "[[A]] [[#place]]",
    "E.md": "[[E]] nothing else",
    "F.md": "[[A]]",
}


def id_of(index: NoteIndex, title: str) -> int:
    [(id,)] = index.connection.execute("SELECT id FROM notes WHERE title = ?", (title,))
    return int(id)


def titles(index: NoteIndex, ids: Any) -> str:
    return "".join(sorted(note_by_id(index.connection, id).title for id in ids))


def test_neighbours(tmp_path: Path) -> None:
    with open_vault(tmp_path, NOTES) as index:
        a = id_of(index, "A")
        assert titles(index, links.outlinks(index.connection, [a])[a]) == "BC"
        assert titles(index, links.backlinks(index.connection, [a])[a]) == "DF"
        assert [titles(index, links.neighbors(index.connection, a, depth)) for depth in (0, 1, 2, 9)] == [
            "",
            "BCDF",
            "BCDF",
            "BCDF",
        ]
        assert titles(index, links.neighbors(index.connection, id_of(index, "F"), 1)) == "A"
        assert titles(index, links.neighbors(index.connection, id_of(index, "F"), 2)) == "ABCD"


def test_paths_orphans_dangling_links_and_tags(tmp_path: Path) -> None:
    with open_vault(tmp_path, NOTES) as index:
        way = links.shortest_path(index.connection, id_of(index, "F"), id_of(index, "C"))
        assert [note_by_id(index.connection, id).title for id in way] == ["F", "A", "C"]
        assert links.shortest_path(index.connection, id_of(index, "F"), id_of(index, "E")) == []
        assert titles(index, links.orphans(index.connection)) == "E"
        assert [(each.path, each.line, each.target) for each in links.dangling(index.connection)] == [
            ("A.md", 5, "Nothing")
        ]
        assert {tag: titles(index, ids) for tag, ids in links.tags(index.connection).items()} == {"x": "A"}


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ('find("A")', "A"),
        ('find("nowhere")', ""),
        ('outlinks("A")', "BC"),
        ('inlinks("a.md")', "DF"),
        ('neighbors("A")', "BCDF"),
        ('find("A") | ->wikilink[]', "B"),
        ('find("A") | ->embed[]', "C"),
        ('find("F") | ->[] | ->[]', "BC"),
        ('outlinks("A") | <-wikilink[]', "AB"),
        ('find("F") | <->wikilink[]', "A"),
        ("SELECT outlinks FROM 'A'", "BC"),
        ('select inlinks from "C"', "AB"),
        ("SELECT neighbors FROM 'F'", "A"),
        ("SELECT * FROM notes WHERE title = 'b'", "B"),
        ("SELECT * FROM notes WHERE status = 'open'", "A"),
        ("SELECT * FROM notes WHERE tags CONTAINS 'x' AND title <> 'B' LIMIT 3", "A"),
        ("MATCH (a {title:'A'})-[:wikilink]->(b) RETURN b", "B"),
        ("MATCH (a {title:'A'})-[:wikilink|embed]->(b) RETURN b", "BC"),
        ("MATCH (a {title:'A'})<-[]-(b) RETURN b", "DF"),
        ("MATCH (a {title:'A'})-[]-(b) RETURN b", "BCDF"),
        ("MATCH (a {title:'F'})-[*]->(b) RETURN b", "ABCD"),
        ("MATCH (a {title:'F'})-[*2..3]->(b) RETURN b", "BCD"),
        ("MATCH (a {title:'F'})-[*..2]->(b) RETURN b", "ABC"),
        ("MATCH (a {title:'F'})-[+]->(b) WHERE b.status = 'done' RETURN b", "B"),
        ("MATCH (a {title:$t})-->(b) RETURN b", "BC"),
        ("MATCH (a)-->(b)-->(a) RETURN a", ""),
        ("MATCH (a)-->(b) WHERE a.title = 'B' AND b.title STARTS WITH 'c' RETURN b", "C"),
    ],
)
def test_queries(tmp_path: Path, query: str, result: str) -> None:
    with open_vault(tmp_path, NOTES) as index:
        rows = run_graph_query(index.connection, parse_graph_query(query, {"t": "A"}))
        notes = [next(iter(row.values())) if isinstance(row, dict) else row for row in rows]
        assert "".join(sorted(note.title for note in notes)) == result


def test_columns(tmp_path: Path) -> None:
    with open_vault(tmp_path, NOTES) as index:
        query = parse_graph_query("MATCH (a {title: 'A'})-->(b) RETURN a.title AS from, b.title, b.status LIMIT 1")
        assert run_graph_query(index.connection, query) == [{"from": "A", "b.title": "B", "b.status": "done"}]


def test_what_follows_the_steps_is_left_to_jq() -> None:
    query = parse_graph_query('find("A") | ->[] | .[] | select(.title == "B | C")')
    assert (len(query.edges), query.jq) == (1, '.[] | select(.title == "B | C")')


@pytest.mark.parametrize(
    ("query", "message", "column"),
    [
        ("", "empty", 0),
        ("foo('x')", "no `foo", 1),
        ("outlinks(", "ends too early|cannot be understood", 0),
        ("find('x') | ->zz[]", "no link of kind `zz`", 15),
        ("MATCH (a)-[:zz]->(b) RETURN b", "no link of kind `zz`", 13),
        ("MATCH (a RETURN a", "column 10", 10),
        ("MATCH (a) RETURN b", "no note `b`", 0),
        ("MATCH (a)-[*3..2]->(b) RETURN b", "cannot be followed", 0),
        ("MATCH (a)-[*1..99]->(b) RETURN b", "cannot be followed", 0),
        ("MATCH (a {title: $missing}) RETURN a", "no value for `\\$missing`", 18),
        ("DROP TABLE notes", "column 6", 6),
        ("(" * 1999, "column|early", None),
        ("x" * 2001, "more than 2000", 0),
    ],
)
def test_what_cannot_be_understood_says_where(query: str, message: str, column: int | None) -> None:
    with pytest.raises(BadQuery, match=message) as error:
        parse_graph_query(query)
    if column:
        assert error.value.column == column


def test_a_query_with_too_many_results_is_refused(tmp_path: Path) -> None:
    notes = {f"{n}.md": " ".join(f"[[{m}]]" for m in range(60)) for n in range(60)}
    with open_vault(tmp_path, notes) as index, pytest.raises(BadQuery, match="more than 100,000"):
        run_graph_query(index.connection, parse_graph_query("MATCH (a)-->(b)-->(c) RETURN a.title"))
