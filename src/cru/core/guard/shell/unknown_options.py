"""Which words of a command are options that stand in no table: neither among the harmless ones nor among those that do more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from cru.core.guard.shell.harmless import HarmlessOptions, KnownCommand, options_of
from cru.core.guard.shell.option_effects import ProgramOptions, split_option

_NUMBER = re.compile(r"-\d+")


class ReadWords(Struct, frozen=True):
    """What the words behind a command's own are.

    unknown: by their place, how much of a word is unknown
    operands: places of words that are neither options nor their values
    values: places of words that are the value of the one before
    """

    unknown: dict[int, int] = {}
    operands: tuple[int, ...] = ()
    values: tuple[int, ...] = ()


def read_words(words: tuple[str, ...], command: KnownCommand, effects: Sequence[ProgramOptions]) -> ReadWords:
    """effects: the program's options that do more; how these are used is not looked at. Behind an unknown option a word that may be its
    value is an operand."""
    if command.options.covers_everything:
        return ReadWords({}, tuple(range(command.count, len(words))))
    known = _known_names(command.key, tuple(effects))
    unknown = {command.unknown_word: len(words[command.unknown_word])} if command.unknown_word else {}
    at, has_letters = command.count, any(table.has_bare_letters for table in effects)
    operands: list[int] = []
    taken: list[int] = []
    while at < len(words):
        word, values, length = words[at], 0, 0
        if word == "--" and not known.has_words:
            break
        if len(word) > 1 and word.startswith("-"):
            length, values = known.judge(word)
        elif has_letters and at == 1:
            length, values = known.judge_letters(word, 0)
        else:
            operands.append(at)
            if command.options.ends_at_operand and not (at - 1 in unknown and "=" not in words[at - 1]):
                break
        if length:
            unknown[at] = length
        taken += range(at + 1, min(at + 1 + values, len(words)))
        at += 1 + values
    return ReadWords(unknown, (*operands, *range(at + 1, len(words))), tuple(taken))


@lru_cache(maxsize=64)
def _known_names(key: str, effects: tuple[ProgramOptions, ...]) -> _KnownNames:
    return _KnownNames(key, effects)


class _KnownNames:
    """Every option of a command that stands in a table; key: of the table of harmless ones."""

    def __init__(self, key: str, effects: Sequence[ProgramOptions]) -> None:
        self._options: HarmlessOptions = options_of(key, any(table.has_words for table in effects))
        self._values = dict(self._options.values)
        self._prefixes = dict(self._options.prefixes)
        for name, taking in _names_of(effects):
            if name.endswith("*"):
                self._prefixes[name[:-1]] = taking
            else:
                self._values.setdefault(name, taking)
        self.has_words = any(table.has_words for table in effects)
        self._has_negations = key.startswith("git ")
        self._beginnings = tuple(self._prefixes)

    def judge(self, word: str) -> tuple[int, int]:
        """How much of an option is unknown, 0 if nothing is, and how many words behind it are its values."""
        if self._beginnings and word.startswith(self._beginnings):
            prefix = next(prefix for prefix in self._prefixes if word.startswith(prefix))
            return 0, int(self._prefixes[prefix] == "=" and word == prefix)
        if self._options.takes_numbers and _NUMBER.fullmatch(word):
            return 0, 0
        if word.startswith("--") or self.has_words:
            return self._judge_long(word)
        if word.partition("=")[0] in self._values:
            return 0, int(self._values[word.partition("=")[0]] == "=" and "=" not in word)
        return self.judge_letters(word, 1)

    def judge_letters(self, word: str, start: int) -> tuple[int, int]:
        """Letters in one word; without a dash their values are words of their own."""
        values = 0
        for index, letter in enumerate(word[start:], start):
            taking = self._values.get(f"-{letter}")
            if taking is None and not (letter.isdigit() and self._options.takes_numbers):
                return index + 1, 0
            if not taking:
                continue
            if not start:
                values += taking == "="
            else:
                return 0, int(taking == "=" and index == len(word) - 1)
        return 0, values

    def _judge_long(self, word: str) -> tuple[int, int]:
        """By its whole name only: what begins as a known one may be an option of its own (`--url`, `--url-query`)."""
        head, equals, _ = word.partition("=")
        name = "-" + head.lstrip("-") if self.has_words else head
        taking = self._values.get(name, self._values.get(head))
        if taking is None and self._has_negations and head.startswith("--no-"):
            taking = None if self._values.get("--" + head[5:]) is None else ""
        return (len(head), 0) if taking is None else (0, int(taking == "=" and not equals))


def _names_of(effects: Sequence[ProgramOptions]) -> Iterator[tuple[str, str]]:
    for table in effects:
        for option in (*table.runs, *table.writes, *table.sends):
            name, taking, _ = split_option(option)
            yield name, taking
