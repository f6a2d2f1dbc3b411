"""Find the files of a project by a few characters of their names."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

from msgspec import Struct

from cru.core.tools.walk import WalkStopped, walk

FRESH = 5.0
"""Seconds for which a list of files is good."""
PATIENCE = 0.3
"""Seconds that a search waits for the list; after that it takes what was read so far, or the list before."""
READING = 60.0
"""Seconds after which reading names ends: a list that takes longer is of no use to someone who types."""
MOST = 1_000_000
"""Names that are read: about 100 MB."""
FIRST = 100
"""Names that are offered before anything is typed."""
FEW = 10
"""With fewer files that have the characters together, those are offered that have them in this order."""
SLICE = 1 << 18
"""Characters of the list that one regular expression looks through at a time: other threads wait for it."""


class Matches(Struct, frozen=True):
    """The files to offer, the best first.

    names: relative to the root
    note: why other files may match, too; "": none does
    is_partial: whether names were still being read
    """

    names: list[str]
    note: str = ""
    is_partial: bool = False


class FileList(Struct, frozen=True):
    """The names of files by their length, each length in the order of the walk.

    text: the same names, folded, each between line feeds
    first: in the order of the walk
    is_partial: more names are being read
    is_cut: more names exist, and are not read
    """

    names: list[str]
    text: str
    first: list[str]
    is_partial: bool
    is_cut: bool


class NameReader:
    """Reads all names once, in a thread of its own, while the user types."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._by_length: dict[int, list[str]] = {}
        self._first: list[str] = []
        self._reading = threading.Lock()
        self._end = time.monotonic() + READING
        self.count = 0
        self.is_cut = False
        self.done = threading.Event()
        self.done_at = 0.0

    def start(self) -> None:
        threading.Thread(target=self.read, name="project files", daemon=True).start()

    def read(self) -> None:
        """Read all names, or as many as there is time for."""
        prefix = len(os.fspath(self._root)) + 1
        try:
            for entry in walk(self._root, self._root, stop=self._is_over):
                self._add(entry.path[prefix:])
        except WalkStopped:
            self.is_cut = True
        finally:
            self.done_at = time.monotonic()
            self.done.set()

    def _is_over(self) -> bool:
        return self.count >= MOST or time.monotonic() > self._end

    def _add(self, name: str) -> None:
        if not name.isprintable():
            return
        with self._reading:
            self.count += 1
            self._by_length.setdefault(len(name), []).append(name)
            if len(self._first) < FIRST:
                self._first.append(name)

    def take(self) -> FileList:
        """Return what was read so far."""
        is_partial = not self.done.is_set()
        with self._reading:
            names = list(chain.from_iterable(of_length for _, of_length in sorted(self._by_length.items())))
            first = self._first.copy()
        return FileList(names, "\n".join(["", *names, ""]).casefold(), first, is_partial, self.is_cut)


class ProjectFiles:
    """The files below `root` that no .gitignore leaves out. A search runs in a thread, one at a time."""

    def __init__(self, root: Path, make_reader: Callable[[Path], NameReader] = NameReader) -> None:
        self._root = root
        self._make_reader = make_reader
        self._reader: NameReader | None = None
        self._listed: tuple[NameReader, FileList] | None = None

    @property
    def is_reading(self) -> bool:
        return self._reader is not None and not self._reader.done.is_set()

    def matching(self, characters: str, limit: int) -> Matches:
        """Return at most `limit` files: names that begin so, names that have it, paths that have it, and paths that have its characters in
        this order; shorter ones before longer ones."""
        files = self._read()
        query = characters.casefold()
        names = _search(files, query, limit + 1) if query else files.first
        notes = ["more files match"] if len(names) > limit else []
        if files.is_partial:
            notes.append(f"still reading, {len(files.names):,} files so far")
        elif files.is_cut:
            notes.append(f"only the first {len(files.names):,} files were read")
        return Matches(names[:limit], "; ".join(notes), files.is_partial)

    def _read(self) -> FileList:
        """Return the newest list that is complete, or what was read so far of the first."""
        reader = self._reader
        if reader is None or (reader.done.is_set() and time.monotonic() - reader.done_at > FRESH):
            reader = self._reader = self._make_reader(self._root)
            reader.start()
        is_done = reader.done.wait(PATIENCE)
        if self._listed is not None and (not is_done or self._listed[0] is reader):
            return self._listed[1]
        files = reader.take()
        if not files.is_partial:
            self._listed = reader, files
        return files


def _search(files: FileList, query: str, limit: int) -> list[str]:
    """Return the best `limit` matches, with one pass over the text."""
    ranks: tuple[list[str], list[str], list[str]] = ([], [], [])
    text, at, line, counted = files.text, files.text.find(query), 0, 0
    while at >= 0 and len(ranks[0]) < limit:
        line += text.count("\n", counted, at)
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        last = text[max(begin, text.rfind("/", begin, end) + 1) : end]
        of_rank = ranks[0 if last.startswith(query) else 1 if query in last else 2]
        if len(of_rank) < limit:
            of_rank.append(files.names[line - 1])
        counted, at = at, text.find(query, end)
    matches = list(chain.from_iterable(ranks))[:limit]
    if len(matches) < FEW and len(query) > 1:
        known = set(matches)
        matches += [name for name in _in_order(files, query, limit) if name not in known]
    return matches[:limit]


def _in_order(files: FileList, query: str, limit: int) -> list[str]:
    """Return names that have these characters in this order. Each gap ends at the next character that is looked for and is never given
    back, so that the time is linear."""
    pattern = re.compile("\n" + "".join(f"[^\n{re.escape(char)}]*+{re.escape(char)}" for char in query))
    text, line, counted = files.text, 0, 0
    matches: list[str] = []
    for start, end in _slices(text):
        for match in pattern.finditer(text, start, end):
            line += text.count("\n", counted, match.start() + 1)
            counted = match.start() + 1
            matches.append(files.names[line - 1])
            if len(matches) == limit:
                return matches
    return matches


def _slices(text: str) -> Iterable[tuple[int, int]]:
    """Split the text in front of lines: each slice begins with a line feed."""
    start = 0
    while start < len(text) - 1:
        end = text.find("\n", start + SLICE)
        end = len(text) - 1 if end < 0 else end
        yield start, end
        start = end
