"""File name patterns: `*`, `?`, `[…]`, `**` across folders, `{a,b}`. Matching takes no more than length times length steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

from cru.tools.protocol import ArgumentError

Segment: TypeAlias = Callable[[str], object]
Parts: TypeAlias = tuple[Segment | None, ...]  # None is `**`: any number of folders
MOST = 64


def compile_glob(pattern: str, argument: str = "pattern") -> Callable[[Sequence[str]], bool]:
    """A test for a relative path, split into its names. Raises ArgumentError that names `argument`."""
    every = [_parts(one, argument) for one in braces(pattern, argument)]
    return lambda names: any(fits(parts, names) for parts in every)


def _parts(pattern: str, argument: str) -> Parts:
    names = pattern.split("/")
    if names[0] == "" or ".." in names:
        raise ArgumentError(f"`{argument}`: must stay inside `path`; name another folder in `path`")
    return parts([name for name in names if name not in ("", ".")])


def parts(names: Sequence[str]) -> Parts:
    """The segments of a pattern; a `**` at its end means everything inside, not the folder itself."""
    found: list[Segment | None] = [None if name == "**" else segment(name) for name in names]
    if found and found[-1] is None:
        found.append(bool)
    return tuple(found)


def fits(pattern: Parts, names: Sequence[str]) -> bool:
    """Only the last `**` ever has to be tried again, so there is nothing exponential here."""
    at = name = 0
    star, mark = -1, 0
    while name < len(names):
        wanted = pattern[at] if at < len(pattern) else bool
        if wanted is None:
            star, mark = at, name
            at += 1
        elif at < len(pattern) and wanted(names[name]):
            at += 1
            name += 1
        elif star >= 0:
            mark += 1
            at, name = star + 1, mark
        else:
            return False
    return all(rest is None for rest in pattern[at:])


def segment(text: str) -> Segment:
    """A test for one name. A backslash takes the next character literally."""
    if text == "*":
        return bool
    if not any(c in text for c in "*?[\\"):
        return text.__eq__
    if text[0] == "*" and not any(c in text[1:] for c in "*?[\\"):
        end = text[1:]
        return lambda name: name.endswith(end)
    import re
    from fnmatch import translate

    return re.compile(translate(_plain(text))).match


def _plain(text: str) -> str:
    """In fnmatch's dialect: no backslashes, `[!` where git also has `[^`."""
    found: list[str] = []
    characters = iter(text)
    for c in characters:
        if c == "\\":
            c = next(characters, "\\")
            c = f"[{c}]" if c in "*?[" else c
        elif c == "^" and found[-1:] == ["["]:
            c = "!"
        found.append(c)
    return "".join(found)


def braces(pattern: str, argument: str = "pattern") -> list[str]:
    """`a.{b,c}` is `a.b` and `a.c`; braces may be nested. Raises ArgumentError for more than 64 of them."""
    done: list[str] = []
    left = [pattern]
    while left:
        if len(done) + len(left) > MOST:
            raise ArgumentError(f"`{argument}`: its braces stand for more than {MOST} patterns")
        one = left.pop()
        choice = _first_choice(one)
        if choice is None:
            done.append(one)
        else:
            before, options, after = choice
            left.extend(before + option + after for option in reversed(options))
    return done


def _first_choice(pattern: str) -> tuple[str, list[str], str] | None:
    start = pattern.find("{")
    while start >= 0:
        depth, cuts = 0, [start]
        for i in range(start, len(pattern)):
            c = pattern[i]
            depth += (c == "{") - (c == "}")
            if depth == 0:
                cuts.append(i)
                break
            if c == "," and depth == 1:
                cuts.append(i)
        if depth == 0 and len(cuts) > 2:
            options = [pattern[a + 1 : b] for a, b in pairwise(cuts)]
            return pattern[:start], options, pattern[cuts[-1] + 1 :]
        start = pattern.find("{", start + 1)
    return None
