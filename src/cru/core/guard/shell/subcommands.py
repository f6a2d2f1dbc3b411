"""Which words of a command are subcommands that do more than a rule for the program means, wherever options stand between."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from cru.core.guard.shell.option_effects import READING_OPTIONS, READING_WORDS
from cru.core.guard.shell.syntax import EXPANSION

MOST_OPTIONS = 50
"""Words before a subcommand, each of which may be a value; behind more of them nothing is read."""


def find_subcommands(words: tuple[str, ...], subcommands: Collection[str]) -> tuple[int, ...]:
    """Places of words. subcommands: as in ProgramOptions; words: with EXPANSION for the `$` of a variable"""
    return tuple(dict.fromkeys(_find(words, subcommands))) if subcommands else ()


def _find(words: tuple[str, ...], subcommands: Collection[str]) -> Iterator[int]:
    seconds = {name.partition("/")[0] for name in subcommands if "/" in name}
    firsts = list(islice(_places(words, 1), MOST_OPTIONS))
    if len(firsts) == MOST_OPTIONS:
        yield firsts[0]
    for first in firsts:
        if _may_be(words[first], subcommands) and not _only_reads(words, first):
            yield first
        if EXPANSION not in words[first] and words[first] not in seconds:
            continue
        places = list(islice(_places(words, first + 1), MOST_OPTIONS))
        if len(places) == MOST_OPTIONS:
            yield places[0]
        for second in places:
            if _may_be(f"{words[first]}/{words[second]}", subcommands):
                yield second


def _places(words: tuple[str, ...], start: int) -> Iterator[int]:
    """Where the first word may stand that is neither an option nor the value of one; which take a value is not known."""
    for at in range(start, len(words)):
        if words[at].startswith("-"):
            continue
        yield at
        if at == start or not words[at - 1].startswith("-") or "=" in words[at - 1]:
            return


def _may_be(word: str, subcommands: Collection[str]) -> bool:
    beginning, mark, _ = word.partition(EXPANSION)
    return any(name.startswith(beginning) for name in subcommands) if mark else word in subcommands


def _only_reads(words: tuple[str, ...], first: int) -> bool:
    """By the first word behind it, but for options that change nothing: `--get`, alone among the options, or `get`."""
    reading = READING_WORDS.get(words[first], frozenset())
    rest = [word for word in words[first + 1 :] if "".join(word.partition("=")[:2]) not in READING_OPTIONS]
    if not rest or rest[0] not in reading:
        return False
    return not rest[0].startswith("-") or not any(word.startswith("-") for word in rest[1:])
