"""Paths that rules or protected places name, for whoever looks at many files: folders in which nothing can match, or everything does,
are decided as a whole."""

from __future__ import annotations

import os
from functools import partial

from cru.core.base.files.glob import NameTest, PathGlob, StarGlob, matches_text
from cru.core.base.files.selection import FileSelection, PatternSelection, PatternSet, TreePattern


def fold(text: str) -> str:
    """What is equal of two names that may mean the same file: some file systems, on any system, ignore the letters' case or how an
    accent is written."""
    if text.isascii():
        return text.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", text).casefold())


def names_of(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)


class PathSet:
    """What patterns match of absolute paths without links.

    places: patterns of whole paths
    names: patterns that one name of a path must match; in the project the names of the folders that it lies in do not count
    root: the project
    is_exact: capitals count, and what lies below a match does not belong to it; otherwise the patterns are folded
    """

    def __init__(
        self, places: tuple[PathGlob, ...], names: tuple[StarGlob, ...] = (), root: str = "/", is_exact: bool = False
    ) -> None:
        self._arguments = (places, names, root, is_exact)
        patterns: list[TreePattern] = [
            tuple(None if glob is None else _name_pattern(glob) for glob in place) for place in places
        ]
        if is_exact:  # a `**` at the end is no file
            patterns = [(*pattern, bool) if pattern[-1:] == (None,) else pattern for pattern in patterns]
        patterns += [(None, _name_pattern(name)) for name in names]
        every = PatternSet(patterns, with_descendants=not is_exact, fold=None if is_exact else fold)
        by_place, by_name = every.select(range(len(places))), every.select(range(len(places), len(patterns)))
        self._top: FileSelection = by_place
        if names:
            self._top = _lead_to_project(every.select(), by_place, by_name, names_of(root))
        self._known: dict[str, FileSelection] = {}

    def __reduce__(self) -> tuple[type[PathSet], tuple[object, ...]]:
        return PathSet, self._arguments

    def below(self, folder: str) -> FileSelection:
        """The files of the set below this folder."""
        selection = self._known.get(folder)
        if selection is None:
            selection = self._top
            for name in names_of(folder):
                selection = selection.below(name)
            self._known[folder] = selection
        return selection

    def __contains__(self, file: str) -> bool:
        folder, name = os.path.split(file)
        return self.below(folder).holds(name)


def _name_pattern(glob: StarGlob) -> str | NameTest:
    if len(glob) == 1:
        return glob[0]
    return partial(matches_text, glob)


def _lead_to_project(
    outside: PatternSelection, by_place: PatternSelection, by_name: PatternSelection, way: tuple[str, ...]
) -> FileSelection:
    return _AboveProject(outside, by_place, by_name, way) if way else by_place.union(by_name)


class _AboveProject:
    """The files below a folder in which the project lies.

    outside: for all that is not in the project
    by_place: what whole paths match
    by_name: what names match, seen from the project
    way: the names that lead to the project
    """

    is_empty = is_whole = False

    def __init__(
        self, outside: PatternSelection, by_place: PatternSelection, by_name: PatternSelection, way: tuple[str, ...]
    ) -> None:
        self._outside, self._by_place, self._by_name, self._way = outside, by_place, by_name, way

    def below(self, folder: str) -> FileSelection:
        outside = self._outside.below(folder)
        if folder != self._way[0]:
            return outside
        return _lead_to_project(outside, self._by_place.below(folder), self._by_name, self._way[1:])

    def holds(self, file: str) -> bool:
        return self._outside.holds(file)
