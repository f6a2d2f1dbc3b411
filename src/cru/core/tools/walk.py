"""The files below a folder, in the order of their names, without `.git` and without what .gitignore files leave out (gitignore(5),
without asking git)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from time import monotonic

from msgspec import Struct

from cru.core.base.files.glob import (
    NameTest,
    SearchGlob,
    compile_name,
    is_plain_name,
    matches_search,
    parse_search_glob,
)
from cru.core.base.files.regular import read_regular
from cru.core.base.files.selection import EVERYTHING, FileSelection

RULES_LIMIT = 4 << 20
"""Bytes of a .gitignore; a larger one is not read."""
LINE_LIMIT = 4096
"""Characters of a line in it: no path is longer."""
LINES_LIMIT = 20_000
"""Lines of it; those behind are passed over, as what follows says. The largest that people write have some hundred."""
WILDCARDS_LIMIT = 1_000
"""Names in it that need a regular expression, which takes a hundred times as long to prepare as a plain name."""


class WalkStopped(Exception):
    """The walk was stopped before its end."""


def never() -> bool:
    return False


def deadline(seconds: float) -> Callable[[], bool]:
    end = monotonic() + seconds
    return lambda: monotonic() > end


def walk(
    start: Path, root: Path, selection: FileSelection = EVERYTHING, stop: Callable[[], bool] = never
) -> Iterator[os.DirEntry[str]]:
    """Every file of the selection below `start`; links are given, but not followed. Raises WalkStopped when `stop()` is true.

    Folders that hold nothing of the selection are not looked into; those that cannot be read are passed over.
    """
    ignores, names_above = ignores_above(start, root)
    stack = [(os.fspath(start), names_above, ignores, selection)]
    while stack:
        if stop():
            raise WalkStopped
        path, names, ignores, selection = stack.pop()
        files, folders, rules = _list_folder(path, selection)
        ignores = ignores.within(rules, len(names)) if rules else ignores
        for entry in files:
            if not ignores.is_ignored((*names, entry.name), folder=False):
                yield entry
        for entry in reversed(folders):
            inner_names, inner = (*names, entry.name), selection.below(entry.name)
            if not inner.is_empty and not ignores.is_ignored(inner_names, folder=True):
                stack.append((entry.path, inner_names, ignores, inner))


def _list_folder(path: str, selection: FileSelection) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]], str]:
    """The files of the selection and the folders in it, by name, and where its .gitignore is, "" for none."""
    files, folders, rules = [], [], ""
    holds = selection.holds  # every entry passes here
    try:
        with os.scandir(path) as listing:
            for entry in listing:
                name = entry.name
                if name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry)
                    continue
                if name == ".gitignore":
                    rules = entry.path
                if holds(name):
                    files.append(entry)
    except OSError:
        return [], [], ""
    by_name = attrgetter("name")
    return sorted(files, key=by_name), sorted(folders, key=by_name), rules


class IgnoreRule(Struct, frozen=True):
    """One line of a .gitignore.

    negated: what matches is not ignored after all
    folders_only: files do not match
    last: the pattern of a path's last name
    name: the test of that name; None: `parts` decides
    parts: the glob of the path relative to the rule's own folder
    """

    negated: bool
    folders_only: bool
    last: str
    name: NameTest | None = None
    parts: SearchGlob = ()


class IgnoreFile:
    """The lines of one .gitignore. Of nearly every path its last name tells that no line matches."""

    def __init__(self, rules: Sequence[IgnoreRule]) -> None:
        self._rules = tuple(reversed(rules))
        patterns = {rule.last for rule in rules}
        plain = {pattern for pattern in patterns if is_plain_name(pattern)}
        ends = {pattern for pattern in patterns if pattern[0] == "*" and is_plain_name(pattern[1:])}
        self._names = frozenset(plain)
        self._ends = tuple(pattern[1:] for pattern in ends)
        self._tests = tuple(compile_name(pattern) for pattern in sorted(patterns - plain - ends))

    def find_match(self, names: Sequence[str], folder: bool) -> IgnoreRule | None:
        """The last line that matches a path below its folder."""
        name = names[-1]
        if not (name in self._names or name.endswith(self._ends) or any(test(name) for test in self._tests)):
            return None
        for rule in self._rules:
            if rule.folders_only and not folder:
                continue
            if rule.name(name) if rule.name else matches_search(rule.parts, names):
                return rule
        return None


class IgnoreRules(Struct, frozen=True):
    """The rules that hold in a folder: of each file above it, its depth below the top and its lines, outermost first."""

    layers: tuple[tuple[int, IgnoreFile], ...] = ()

    def within(self, path: str, depth: int) -> IgnoreRules:
        """With the rules of the .gitignore at `path`, whose folder lies `depth` names below the top."""
        rules = read_rules(path)
        return IgnoreRules((*self.layers, (depth, IgnoreFile(rules)))) if rules else self

    def is_ignored(self, names: Sequence[str], folder: bool) -> bool:
        """`names` is the path below the top. The last line that matches decides, the innermost file first."""
        for depth, file in reversed(self.layers):
            rule = file.find_match(names[depth:], folder)
            if rule is not None:
                return not rule.negated
        return False


def ignores_above(start: Path, root: Path) -> tuple[IgnoreRules, tuple[str, ...]]:
    """The rules that hold for `start` itself, and its names below the top: the repository, else the project, else itself."""
    chain = [start, *start.parents]
    top = next((folder for folder in chain if (folder / ".git").exists()), None)
    if top is None:
        top = root if root in chain else start
    names = start.relative_to(top).parts
    ignores = IgnoreRules().within(os.path.join(top, ".git", "info", "exclude"), 0)
    for depth in range(len(names)):
        ignores = ignores.within(os.path.join(top, *names[:depth], ".gitignore"), depth)
    return ignores, names


def read_rules(path: str) -> tuple[IgnoreRule, ...]:
    try:
        text = read_regular(path, RULES_LIMIT).decode("utf-8-sig", "surrogateescape")
    except OSError:
        return ()
    lines = islice((line for line in text.split("\n") if line), LINES_LIMIT)
    return tuple(rule for line in _with_few_wildcards(lines) if (rule := parse_line(line)))


def _with_few_wildcards(lines: Iterable[str]) -> Iterator[str]:
    """Without the lines behind the last that may need a regular expression."""
    left = WILDCARDS_LIMIT
    for line in lines:
        names = line.rstrip("/").split("/")
        left -= sum(1 for name in names if name not in ("*", "**") and not is_plain_name(name.removeprefix("*")))
        if left < 0:
            return
        yield line


def parse_line(line: str) -> IgnoreRule | None:
    """One line of a .gitignore; None if it holds no pattern."""
    text = _strip_blanks(line.rstrip("\r"))
    if not text or text.startswith("#") or len(text) > LINE_LIMIT:
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    names = [name for name in text.split("/") if name]
    if not names:
        return None
    if "/" not in text.rstrip("/") and names != ["**"]:
        return IgnoreRule(negated, folders_only, names[-1], name=compile_name(names[0]))
    return IgnoreRule(negated, folders_only, names[-1], parts=parse_search_glob(names))


def _strip_blanks(text: str) -> str:
    """Without the spaces at its end, unless a backslash keeps them."""
    end = text.rstrip(" ")
    return text[: len(end) + 1] if end.endswith("\\") and len(end) < len(text) else end
