"""Lists and ranges in braces, as bash expands them (manual of bash 5.2, "Brace Expansion"): `r{m,} x` is `rm r x`."""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct

_BRACES = re.compile(r"[{},]")
_RANGE = re.compile(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])(?:\.\.(-?\d{1,4}))?")
_MOST_WORDS = 256
"""That one word may become; the rest is left out."""
_MOST_READ = 20_000
"""Characters that are read of one word, again for each list."""
_MOST_OF_LINE = 100_000
"""Characters that are read of all its words, or written."""


class _Group(Struct):
    """A pair of braces: where it begins and ends, and where the commas stand that divide it."""

    start: int
    end: int
    commas: list[int]


def expand_bash_braces(text: str) -> str:
    """The words of a line, each with the first of what it becomes, in bash's order and with one blank between them."""
    left, words = _MOST_OF_LINE, []
    for word in text.split():
        expanded, count = _expand(word, min(left, _MOST_READ)) if "{" in word else ([word], 0)
        left -= max(count, sum(map(len, expanded)))
        words += expanded
    return " ".join(filter(None, words))


def _expand(word: str, most: int) -> tuple[list[str], int]:
    """What a word becomes, and how many characters were read."""
    done: list[str] = []
    waiting, count = [word], 0
    while waiting and len(done) < _MOST_WORDS:
        form = waiting.pop()
        is_short = count + len(form) <= most
        count += len(form) if is_short else 0
        alternatives = _first_alternatives(form) if is_short else []
        if alternatives:
            waiting += reversed(alternatives[:_MOST_WORDS])
        else:
            done.append(form)
    return done, count


def _first_alternatives(word: str) -> list[str]:
    """The word with each part of its first list or range in its place; none if it has neither."""
    for group in sorted(_groups(word), key=lambda group: group.start):
        inner = word[group.start + 1 : group.end]
        if group.commas:
            cuts = [group.start, *group.commas, group.end]
            parts = [word[at + 1 : end] for at, end in pairwise(cuts)]
        else:
            parts = _range(inner)
        if parts:
            return [f"{word[: group.start]}{part}{word[group.end + 1 :]}" for part in parts]
    return []


def _groups(word: str) -> list[_Group]:
    opened: list[_Group] = []
    closed: list[_Group] = []
    for match in _BRACES.finditer(word):
        if match[0] == "{":
            opened.append(_Group(match.start(), 0, []))
        elif opened and match[0] == ",":
            opened[-1].commas.append(match.start())
        elif opened:
            group = opened.pop()
            group.end = match.start()
            closed.append(group)
    return closed


def _range(inner: str) -> list[str]:
    """`a..c` and `1..9..2`; nothing for what is no range. Zeros before a number are not kept."""
    match = _RANGE.fullmatch(inner)
    if match is None or match[1].isalpha() != match[2].isalpha():
        return []
    first, last = (ord(end) if end.isalpha() else int(end) for end in (match[1], match[2]))
    step = abs(int(match[3] or 1)) or 1
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [chr(number) if match[1].isalpha() else str(number) for number in numbers[: _MOST_WORDS + 1]]
