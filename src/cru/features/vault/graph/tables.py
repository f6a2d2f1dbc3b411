"""`cru.graph` on a table of one's own: {notes = {{title, path, links = {titles}}, ...}}. Titles are compared as they are written."""

from __future__ import annotations

from typing import Any

from cru.core.api.arguments import table, text

Notes = dict[str, Any]


def find(graph: Notes, title: str) -> Notes | None:
    """graph.find(g, title) -> the note, or nil. Raises BadArgument.

    Example: cru.graph.find({notes={{title="a"}}}, "a").title --> "a"
    """
    return _find("cru.graph.find", graph, title)


def outlinks(graph: Notes, title: str) -> list[Notes]:
    """graph.outlinks(g, title) -> the notes that it links to; links to nothing are left out. Raises BadArgument.

    Example: #cru.graph.outlinks({notes={{title="a", links={"b", "c"}}, {title="b"}}}, "a") --> 1
    """
    where = "cru.graph.outlinks"
    note = _find(where, graph, title)
    linked = [_find(where, graph, link) for link in (note or {}).get("links") or () if isinstance(link, str)]
    return [other for other in linked if other is not None]


def inlinks(graph: Notes, title: str) -> list[Notes]:
    """graph.inlinks(g, title) -> the notes that link to it. Raises BadArgument.

    Example: cru.graph.inlinks({notes={{title="a", links={"b"}}, {title="b"}}}, "b")[1].title --> "a"
    """
    where = "cru.graph.inlinks"
    text(where, "title", title)
    return [note for note in _notes(where, graph) if title in (note.get("links") or ())]


def _find(where: str, graph: Notes, title: str) -> Notes | None:
    text(where, "title", title)
    return next((note for note in _notes(where, graph) if note.get("title") == title), None)


def _notes(where: str, graph: Notes) -> list[Notes]:
    notes = table(where, "g", graph).get("notes") or ()
    return [note for note in notes if isinstance(note, dict)]
