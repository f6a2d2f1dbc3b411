"""What a word of a command line may be to its program: the options that the files of `facts/` list, and what each does.

An option that no file lists is unknown, and an allow rule must write it out. A rule that names a program of which nothing is known means
all that it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache, lru_cache

from msgspec import Struct

from cru.core.guard.shell.program_facts import CommandFacts
from cru.core.guard.shell.programs import COMMANDS, GROUPS
from cru.core.guard.shell.syntax import EXPANSION

NO_FILES = frozenset(("-", "/dev/null", "/dev/stdout", "/dev/stderr"))
"""Values of an option that names a file which are none."""
HARMLESS = {name: facts.harmless for name, facts in COMMANDS.items() if facts.harmless is not None}
"""Commands of which the harmless options are known."""
_BEGINNINGS = frozenset(" ".join(name.split()[:count]) for name in HARMLESS for count in range(1, len(name.split())))
_DEEPEST = max(len(name.split()) for name in HARMLESS)
_NUMBER = re.compile(r"-\d+")


class OptionEffect(Enum):
    """What an option can do; the value is how a person is told.

    RUNS: start a program that it names, or take further options from a file
    WRITES: write, move or remove a file that it names
    SENDS: hand over what is in a file, or what other programs keep secret
    UNKNOWN: nothing is known of it, or it is known not to be harmless in another way
    """

    RUNS = "may run another program"
    WRITES = "writes to a place of its own"
    SENDS = "gives away what is in a file or another program"
    UNKNOWN = "is not known to be harmless"


class OptionUse(Struct, frozen=True):
    """A word that an allow rule must name before it covers the command.

    word: as the program gets it
    length: of its beginning that the rule must write out; the rest is a value, or other letters
    """

    word: str
    length: int
    effect: OptionEffect

    @property
    def option(self) -> str:
        return self.word[: self.length]


class TabledOption(Struct, frozen=True):
    """An option that does more than the program's name says.

    taking: how it takes a value: "", "=" or "[=]"
    condition: what must be in its value; beginning with `^`, at its start, with `!^`, not at its start
    """

    name: str
    taking: str
    condition: str
    effect: OptionEffect

    def applies(self, value: str) -> bool:
        """Return whether it does with this value what the file says, or may: what a variable holds is not known."""
        if self.effect is OptionEffect.WRITES and self.taking == "=" and value in NO_FILES:
            return False
        if self.condition.startswith("^"):
            beginning, mark, _ = value.partition(EXPANSION)
            start = self.condition[1:]
            return beginning.startswith(start) or (bool(mark) and start.startswith(beginning))
        if self.condition.startswith("!^"):
            return not value.startswith(self.condition[2:])
        if self.condition == ":":  # what it stands behind is no path
            value = value.partition("/")[0]
        return self.condition in value or EXPANSION in value


class CommandOptions(Struct, frozen=True):
    """The options of a program or subcommand.

    facts: as the file gives them
    effects: every option that does more, in the order in which they are tried; the next four are these by how they are written
    has_words: options are whole words with one dash or two (`-exec`); otherwise a dash stands before single letters
    harmless: option → how it takes a value
    harmless_prefixes: the same for the beginnings of words
    long: options that do more, with two dashes, or whole words
    whole: those of several letters behind one dash, among others of one letter
    letters: those of one letter, by it
    prefixes: those that are known by how their words begin
    valued: letters behind which the rest of a word is a value
    running: subcommands that run something
    """

    facts: CommandFacts
    has_words: bool
    harmless: dict[str, str]
    harmless_prefixes: dict[str, str]
    effects: tuple[TabledOption, ...]
    long: tuple[TabledOption, ...]
    whole: tuple[TabledOption, ...]
    letters: dict[str, list[TabledOption]]
    prefixes: tuple[TabledOption, ...]
    valued: frozenset[str]
    running: frozenset[str]

    @property
    def covers_everything(self) -> bool:
        """Whether no option must be written out, since the command runs code of the project anyway."""
        return self.facts.harmless == "*"

    @property
    def takes_numbers(self) -> bool:
        return "-#" in self.harmless

    @property
    def ends_at_operand(self) -> bool:
        """Whether the first word that is no option ends the options."""
        return "..." in self.harmless

    @property
    def has_bare_letters(self) -> bool:
        """Whether the letters of the first word are options even without a dash (`tar xzf`)."""
        return self.facts.style == "letters"

    @property
    def has_any_dashes(self) -> bool:
        """Whether long options may have any number of dashes (`-script-shell`)."""
        return self.facts.style == "dashes"

    @property
    def is_abbreviated(self) -> bool:
        """Whether long options may be shortened."""
        return self.facts.style not in ("words", "full")


@cache
def options_of(key: str) -> CommandOptions:
    """Return the options of a command that a file names."""
    facts = COMMANDS[key]
    has_words = COMMANDS.get(key.partition(" ")[0], facts).style == "words"
    harmless, harmless_prefixes = _read_harmless(facts.harmless or "", has_words)
    by_effect = {OptionEffect.RUNS: facts.runs, OptionEffect.WRITES: facts.writes, OptionEffect.SENDS: facts.sends}
    effects = tuple(
        TabledOption(*_split_option(text), effect)
        for effect, texts in by_effect.items()
        for text in sorted({*texts.split()})
    )
    options = [option for option in effects if not option.name.endswith("*")]
    letters: dict[str, list[TabledOption]] = {}
    for option in options:
        if len(option.name) == 2 and option.name[0] == "-":
            letters.setdefault(option.name[1], []).append(option)
    valued = facts.valued
    if valued is None:
        valued = "".join(name[1] for name, taking in harmless.items() if len(name) == 2 and taking == "=")
    return CommandOptions(
        facts,
        has_words,
        harmless,
        harmless_prefixes,
        effects,
        long=tuple(option for option in options if option.name.startswith("--") or facts.style == "words"),
        whole=tuple(option for option in options if len(option.name) > 2 and not option.name.startswith("--")),
        letters=letters,
        prefixes=tuple(TabledOption(o.name[:-1], "", "", o.effect) for o in effects if o.name.endswith("*")),
        valued=frozenset(valued),
        running=frozenset(facts.running.split()),
    )


def _read_harmless(text: str, has_words: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of a text, and the beginnings of words, each with how it takes a value."""
    values: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    for name, taking, _ in map(_split_option, _expanded(text)):
        if name.endswith("*") and len(name) > 1:
            prefixes[name[:-1]] = taking
        elif name.startswith("--") or name == "..." or has_words or len(name) < 3:
            values[name] = taking
        else:
            values.update({**{f"-{letter}": "" for letter in name[1:-1]}, f"-{name[-1]}": taking})
    return values, prefixes


def _expanded(text: str) -> Iterator[str]:
    """Yield the options with those of groups (`@name`)."""
    for token in text.split():
        if token.startswith("@"):
            yield from _expanded(GROUPS[token[1:]])
        else:
            yield token


def _split_option(text: str) -> tuple[str, str, str]:
    """Return an option's name, how it takes a value, and what must be in that."""
    if text.endswith("[=]"):
        return text.removesuffix("[=]"), "[=]", ""
    name, taking, condition = text.partition("=")
    return name, taking, condition


class KnownCommand(Struct, frozen=True):
    """What is known of a command by its first words.

    count: of the words that name it
    unknown_word: the place of a subcommand that no file has, 0 if there is none
    """

    key: str
    count: int
    unknown_word: int = 0


def find_known_command(words: tuple[str, ...]) -> KnownCommand | None:
    """words: the first is the program as the files name it"""
    key, count = words[0], 1
    if key not in HARMLESS:
        return None
    for word in words[1:_DEEPEST]:
        if f"{key} {word}" not in HARMLESS:
            break
        key, count = f"{key} {word}", count + 1
    return KnownCommand(key, count, _unknown_subcommand(key, words, count))


def _unknown_subcommand(key: str, words: tuple[str, ...], count: int) -> int:
    """Return the place of the first word that is neither an option nor the value of a known one, if no file has it."""
    if key not in _BEGINNINGS:
        return 0
    harmless = options_of(key).harmless
    for at in range(count, len(words)):
        is_value = at > count and harmless.get(words[at - 1]) == "="
        if not words[at].startswith("-") and not is_value:
            return 0 if f"{key} {words[at]}" in HARMLESS else at
    return 0


class KnownNames:
    """Every option of a command that a file lists, harmless or not."""

    def __init__(self, key: str, others: Iterable[CommandOptions]) -> None:
        """others: options that do more"""
        self.options = options_of(key)
        self._values = dict(self.options.harmless)
        self._prefixes = dict(self.options.harmless_prefixes)
        for option in (option for table in others for option in table.effects):
            if option.name.endswith("*"):
                self._prefixes[option.name[:-1]] = option.taking
            else:
                self._values.setdefault(option.name, option.taking)
        self._has_negations = key.startswith("git ")
        self._beginnings = tuple(self._prefixes)

    def judge(self, word: str) -> tuple[int, int]:
        """Return how much of an option is unknown, 0 if nothing is, and how many words behind it are its values."""
        if self._beginnings and word.startswith(self._beginnings):
            prefix = next(prefix for prefix in self._prefixes if word.startswith(prefix))
            return 0, int(self._prefixes[prefix] == "=" and word == prefix)
        if self.options.takes_numbers and _NUMBER.fullmatch(word):
            return 0, 0
        if word.startswith("--") or self.options.has_words:
            return self._judge_long(word)
        if word.partition("=")[0] in self._values:
            return 0, int(self._values[word.partition("=")[0]] == "=" and "=" not in word)
        return self.judge_letters(word, 1)

    def judge_letters(self, word: str, start: int) -> tuple[int, int]:
        """Return the same of letters in one word; without a dash their values are words of their own."""
        values = 0
        for index, letter in enumerate(word[start:], start):
            taking = self._values.get(f"-{letter}")
            if taking is None and not (letter.isdigit() and self.options.takes_numbers):
                return index + 1, 0
            if not taking:
                continue
            if not start:
                values += taking == "="
            else:
                return 0, int(taking == "=" and index == len(word) - 1)
        return 0, values

    def _judge_long(self, word: str) -> tuple[int, int]:
        """Look for the whole name only: what begins as a known one may be an option of its own (`--url`, `--url-query`)."""
        head, equals, _ = word.partition("=")
        name = "-" + head.lstrip("-") if self.options.has_words else head
        taking = self._values.get(name, self._values.get(head))
        if taking is None and self._has_negations and head.startswith("--no-"):
            taking = None if self._values.get("--" + head[5:]) is None else ""
        return (len(head), 0) if taking is None else (0, int(taking == "=" and not equals))


@lru_cache(maxsize=64)
def known_names(key: str, others: tuple[str, ...]) -> KnownNames:
    """others: keys of commands whose options that do more are known, too"""
    return KnownNames(key, map(options_of, others))
