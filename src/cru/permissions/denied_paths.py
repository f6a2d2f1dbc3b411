"""What deny rules forbid to read, for whoever looks at many files: folders in which no rule can match, or everything is forbidden, are
decided as a whole."""

from __future__ import annotations

import os
import sys
from functools import partial

from cru.files.glob import NameTest, PathGlob, StarGlob, matches_text
from cru.files.selection import FileSelection, PatternSelection, PatternSet, TreePattern

FOLDS_NAMES = sys.platform in ("darwin", "win32")
"""Whether names of files are the same in either case."""


def fold(text: str) -> str:
    return text.casefold() if FOLDS_NAMES else text


def names_of(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)


class DeniedPaths:
    """What deny rules match of absolute paths without links, and all that lies below it.

    places: patterns of whole paths, folded
    names: patterns, folded, that one name of a path must match; in the project the names of the folders that it lies in do not count
    root: the project
    """

    def __init__(self, places: tuple[PathGlob, ...], names: tuple[StarGlob, ...], root: str) -> None:
        self._rules = (places, names, root)
        patterns: list[TreePattern] = [
            tuple(None if glob is None else _name_pattern(glob) for glob in place) for place in places
        ]
        patterns += [(None, _name_pattern(name)) for name in names]
        every = PatternSet(patterns, with_descendants=True, fold=fold if FOLDS_NAMES else None)
        by_place, by_name = every.select(range(len(places))), every.select(range(len(places), len(patterns)))
        self._top = _lead_to_project(every.select(), by_place, by_name, names_of(root))
        self._known: dict[str, FileSelection] = {}

    def __reduce__(self) -> tuple[type[DeniedPaths], tuple[object, ...]]:
        return DeniedPaths, self._rules

    def below(self, folder: str) -> FileSelection:
        """The files below this folder that may not be read."""
        selection = self._known.get(folder)
        if selection is None:
            selection = self._top
            for name in names_of(folder):
                selection = selection.below(name)
            self._known[folder] = selection
        return selection

    def forbids(self, file: str) -> bool:
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
