"""The files below a folder, in the order of their names, without `.git` and without what .gitignore files leave out (gitignore(5),
without asking git)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from time import monotonic

from msgspec import Struct

from cru.files.glob import NameTest, SearchGlob, compile_name, matches_search, parse_search_glob
from cru.files.regular import read_regular
from cru.files.selection import EVERYTHING, FileSelection


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
        entries = _entries(path)
        if any(entry.name == ".gitignore" for entry in entries):
            ignores = ignores.within(path, len(names))
        below = []
        for entry in entries:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                inner = selection.below(name)
                if not inner.is_empty and name != ".git" and not ignores.is_ignored((*names, name), folder=True):
                    below.append((entry.path, (*names, name), ignores, inner))
            elif selection.holds(name) and name != ".git" and not ignores.is_ignored((*names, name), folder=False):
                yield entry
        stack.extend(reversed(below))


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as listing:
            return sorted(listing, key=attrgetter("name"))
    except OSError:
        return []


class IgnoreRule(Struct, frozen=True):
    """One line of a .gitignore.

    negated: what matches is not ignored after all
    folders_only: files do not match
    name: the test of a path's last name; None: `parts` decides
    parts: the glob of the path relative to the rule's own folder
    """

    negated: bool
    folders_only: bool
    name: NameTest | None = None
    parts: SearchGlob = ()


class IgnoreRules(Struct, frozen=True):
    """The rules that hold in a folder: of each file above it, its depth below the top and its lines, outermost first."""

    layers: tuple[tuple[int, tuple[IgnoreRule, ...]], ...] = ()

    def within(self, folder: str, depth: int) -> IgnoreRules:
        """With the rules of the .gitignore of `folder`, which lies `depth` names below the top."""
        rules = read_rules(os.path.join(folder, ".gitignore"))
        return IgnoreRules((*self.layers, (depth, rules))) if rules else self

    def is_ignored(self, names: Sequence[str], folder: bool) -> bool:
        """`names` is the path below the top. The last line that matches decides, the innermost file first."""
        for depth, rules in reversed(self.layers):
            for rule in reversed(rules):
                if rule.folders_only and not folder:
                    continue
                if rule.name(names[-1]) if rule.name else matches_search(rule.parts, names[depth:]):
                    return not rule.negated
        return False


def ignores_above(start: Path, root: Path) -> tuple[IgnoreRules, tuple[str, ...]]:
    """The rules that hold for `start` itself, and its names below the top: the repository, else the project, else itself."""
    chain = [start, *start.parents]
    top = next((folder for folder in chain if (folder / ".git").exists()), None)
    if top is None:
        top = root if root in chain else start
    names = start.relative_to(top).parts
    ignores = IgnoreRules(((0, read_rules(top / ".git" / "info" / "exclude")),))
    for depth, folder in enumerate(top.joinpath(*names[:i]) for i in range(len(names))):
        ignores = ignores.within(os.fspath(folder), depth)
    return ignores, names


def read_rules(path: str | Path) -> tuple[IgnoreRule, ...]:
    try:
        text = read_regular(path).decode("utf-8-sig", "surrogateescape")
    except OSError:
        return ()
    return tuple(rule for line in text.split("\n") if (rule := parse_line(line)))


def parse_line(line: str) -> IgnoreRule | None:
    """One line of a .gitignore; None if it holds no pattern."""
    text = _strip_blanks(line.rstrip("\r"))
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    names = [name for name in text.split("/") if name]
    if not names:
        return None
    if "/" not in text.rstrip("/") and names != ["**"]:
        return IgnoreRule(negated, folders_only, name=compile_name(names[0]))
    return IgnoreRule(negated, folders_only, parts=parse_search_glob(names))


def _strip_blanks(text: str) -> str:
    """Without the spaces at its end, unless a backslash keeps them."""
    end = text.rstrip(" ")
    return text[: len(end) + 1] if end.endswith("\\") and len(end) < len(text) else end
