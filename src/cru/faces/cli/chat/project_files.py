"""The files of a project by a few characters of their names."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from cru.tools.walk import WalkStopped, deadline, walk

FRESH = 5.0
"""Seconds for which a list of files is good."""
READING = 2.0
"""Seconds that reading the names may take; what was found by then is offered."""
FEW = 10
"""With fewer files that have the characters together, those are offered that have them in this order."""
MOST = 5_000
"""Of these the best are taken: one character stands in most names."""
SEARCHING = 0.03
"""Seconds that looking for the latter may take."""


class ProjectFiles:
    """Those below `root` that no .gitignore leaves out. Made and used in a thread: reading 200,000 names takes about a second."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: list[str] = []
        self._text = ""
        self._read_at = -FRESH

    def matching(self, characters: str, limit: int) -> list[str]:
        """Paths relative to the root, the best first: names that begin so, names that have it, paths that have it, and paths that have its
        characters in this order; shorter ones before longer ones."""
        self._read()
        query = characters.casefold()
        if not query:
            return self._names[:limit]
        matches = self._with_text(query)
        if len(matches) < FEW and len(query) > 1:
            matches += [name for name in self._in_order(query) if name not in matches]
        return sorted(matches, key=lambda name: _rank(name, query))[:limit]

    def _read(self) -> None:
        if time.monotonic() - self._read_at < FRESH:
            return
        prefix = len(os.fspath(self._root)) + 1
        names: list[str] = []
        try:
            for entry in walk(self._root, self._root, stop=deadline(READING)):
                names.append(entry.path[prefix:])
        except WalkStopped:
            pass
        self._names = [name for name in names if name.isprintable()]
        self._text = "\n".join(["", *self._names, ""]).casefold()
        self._read_at = time.monotonic()

    def _with_text(self, query: str) -> list[str]:
        """Names in which it stands, each looked at once: the whole list is one text."""
        matches: list[str] = []
        at, line, counted = self._text.find(query), 0, 0
        while at >= 0 and len(matches) < MOST:
            line += self._text.count("\n", counted, at)
            counted = at
            matches.append(self._names[line - 1])
            at = self._text.find(query, self._text.find("\n", at))
        return matches

    def _in_order(self, query: str) -> list[str]:
        pattern = re.compile("[^\n]*?".join(re.escape(char) for char in query))
        matches: list[str] = []
        late, at = deadline(SEARCHING), 0
        for number, name in enumerate(self._names):
            if number % 1_000 == 0 and late():
                break
            at = self._text.find("\n", at) + 1
            if pattern.search(self._text, at, self._text.find("\n", at)):
                matches.append(name)
        return matches


def _rank(name: str, query: str) -> tuple[int, int, str]:
    last = name.rpartition("/")[2].casefold()
    place = 0 if last.startswith(query) else 1 if query in last else 2 if query in name.casefold() else 3
    return place, len(name), name
