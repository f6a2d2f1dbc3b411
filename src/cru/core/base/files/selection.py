"""Which files of a tree are meant, decided folder by folder on the way down: where none or all of a folder's files are, nobody has to
look at them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from cru.core.base.files.glob import BadGlob, NameTest, compile_name, expand_braces, is_plain_name

TreePattern: TypeAlias = "tuple[str | NameTest | None, ...]"
"""A path below some folder, name by name: the name itself, a test of it, or None for any number of names."""

Position: TypeAlias = tuple[int, int]
"""The number of a pattern, and how many of its names stand above a folder."""


class FileSelection(Protocol):
    """Some of the files in a folder and below it.

    is_empty: none of them
    is_whole: all of them
    """

    @property
    def is_empty(self) -> bool: ...

    @property
    def is_whole(self) -> bool: ...

    def below(self, folder: str) -> FileSelection:
        """What of it lies in the folder of that name."""
        ...

    def holds(self, file: str, /) -> bool:
        """Whether the file of that name, directly in the folder, belongs to it."""
        ...


class Everything:
    """All files."""

    is_empty = False
    is_whole = True

    def below(self, folder: str) -> FileSelection:
        return self

    def holds(self, file: str) -> bool:
        return True


class Nothing:
    """No file."""

    is_empty = True
    is_whole = False

    def below(self, folder: str) -> FileSelection:
        return self

    def holds(self, file: str) -> bool:
        return False


EVERYTHING = Everything()
NOTHING = Nothing()


class PatternSet:
    """Path patterns. Folders in which the same of them can still match share one PatternSelection.

    with_descendants: a pattern stands for all that lies below what it matches, too
    fold: makes names equal that mean the same file; the patterns are folded already
    """

    def __init__(
        self,
        patterns: Sequence[TreePattern],
        *,
        with_descendants: bool = False,
        fold: Callable[[str], str] | None = None,
    ) -> None:
        self.patterns = tuple(patterns)
        self.with_descendants = with_descendants
        self.fold = fold
        self._selections: dict[frozenset[Position], PatternSelection] = {}

    def select(self, numbers: Iterable[int] | None = None) -> PatternSelection:
        """The files that the patterns match, seen from the folder that they start in; `numbers` chooses some of the patterns."""
        chosen = range(len(self.patterns)) if numbers is None else numbers
        return self.at(frozenset(place for number in chosen for place in self.advance((number, 0))))

    def at(self, positions: frozenset[Position]) -> PatternSelection:
        selection = self._selections.get(positions)
        if selection is None:
            selection = self._selections[positions] = PatternSelection(self, positions)
        return selection

    def advance(self, position: Position) -> Iterator[Position]:
        """The position, and those behind it that are reached when each `**` stands for no name."""
        number, at = position
        yield position
        pattern = self.patterns[number]
        while at < len(pattern) and pattern[at] is None:
            at += 1
            yield number, at


class PatternSelection:
    """The files that patterns match, seen from one folder."""

    def __init__(self, patterns: PatternSet, positions: frozenset[Position]) -> None:
        self.positions = positions
        self._set = patterns
        self._fold = patterns.fold
        self._lasting: list[Position] = []
        self._by_name: dict[str, list[Position]] = {}
        self._by_test: list[tuple[NameTest, list[Position]]] = []
        file_names: set[str] = set()
        file_tests: list[NameTest] = []
        ends = {(number, len(pattern)) for number, pattern in enumerate(patterns.patterns)}
        for number, at in sorted(positions - ends):
            name = patterns.patterns[number][at]
            following = list(patterns.advance((number, at + 1)))
            if name is None:
                self._lasting.extend(patterns.advance((number, at)))
            elif isinstance(name, str):
                self._by_name.setdefault(name, []).extend(following)
            else:
                self._by_test.append((name, following))
            if name is not None and not ends.isdisjoint(following):
                file_names.add(name) if isinstance(name, str) else file_tests.append(name)
        self._file_names = frozenset(file_names)
        self._file_tests = tuple(file_tests)
        self.is_whole = patterns.with_descendants and not ends.isdisjoint(positions)
        self.is_empty = not self.is_whole and positions <= ends
        is_plain = not (self.is_whole or self._file_tests or self._fold)
        self.holds: Callable[[str], bool] = self._file_names.__contains__ if is_plain else self._holds

    def below(self, folder: str) -> PatternSelection:
        if self.is_whole:
            return self
        folder = self._fold(folder) if self._fold else folder
        positions = [*self._lasting, *self._by_name.get(folder, ())]
        for test, following in self._by_test:
            if test(folder):
                positions += following
        return self._set.at(frozenset(positions))

    def _holds(self, file: str) -> bool:
        if self._fold:
            file = self._fold(file)
        if self.is_whole or file in self._file_names:
            return True
        for test in self._file_tests:  # noqa: SIM110  (for every file: `any` takes twice as long)
            if test(file):
                return True
        return False

    def union(self, other: PatternSelection) -> PatternSelection:
        """Together with a selection by the same patterns."""
        return self._set.at(self.positions | other.positions)


def select_by_glob(patterns: Iterable[str]) -> PatternSelection:
    """The files that one of the globs of a search matches. Raises BadGlob."""
    return PatternSet([_parse_glob(text) for pattern in patterns for text in expand_braces(pattern)]).select()


def _parse_glob(pattern: str) -> TreePattern:
    names = pattern.split("/")
    if names[0] == "" or ".." in names:
        raise BadGlob("must stay inside `path`; name another folder in `path`")
    parts = tuple(_parse_name(name) for name in names if name not in ("", "."))
    return (
        (*parts, bool) if parts and parts[-1] is None else parts
    )  # a `**` at the end: what is inside, not the folder itself


def _parse_name(name: str) -> str | NameTest | None:
    if name == "**":
        return None
    return name if is_plain_name(name) else compile_name(name)


class _Both:
    def __init__(self, first: FileSelection, second: FileSelection) -> None:
        self._first, self._second = first, second
        self.is_empty = first.is_empty or second.is_empty
        self.is_whole = False

    def below(self, folder: str) -> FileSelection:
        return both(self._first.below(folder), self._second.below(folder))

    def holds(self, file: str) -> bool:
        return self._first.holds(file) and self._second.holds(file)


class _Either:
    def __init__(self, first: FileSelection, second: FileSelection) -> None:
        self._first, self._second = first, second
        self.is_empty = self.is_whole = False

    def below(self, folder: str) -> FileSelection:
        return either(self._first.below(folder), self._second.below(folder))

    def holds(self, file: str) -> bool:
        return self._first.holds(file) or self._second.holds(file)


class _Without:
    def __init__(self, selection: FileSelection, left_out: FileSelection) -> None:
        self._selection, self._left_out = selection, left_out
        self.is_empty = selection.is_empty or left_out.is_whole
        self.is_whole = False

    def below(self, folder: str) -> FileSelection:
        return without(self._selection.below(folder), self._left_out.below(folder))

    def holds(self, file: str) -> bool:
        return self._selection.holds(file) and not self._left_out.holds(file)


def both(first: FileSelection, second: FileSelection) -> FileSelection:
    """The files that belong to both."""
    if first.is_whole:
        return second
    return first if second.is_whole else _Both(first, second)


def either(first: FileSelection, second: FileSelection) -> FileSelection:
    """The files that belong to one of them, or to both."""
    if first.is_empty or second.is_whole:
        return second
    return first if second.is_empty or first.is_whole else _Either(first, second)


def without(selection: FileSelection, left_out: FileSelection) -> FileSelection:
    """The files of the first that do not belong to the second."""
    return selection if left_out.is_empty else _Without(selection, left_out)
