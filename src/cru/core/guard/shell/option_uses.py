"""Which words of a command make its program do more than its name says, by the table of `option_effects`: abbreviated, combined, with their
value in the same word or the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from cru.core.guard.shell.harmless import TABLES, KnownCommand, find_known_command, options_of
from cru.core.guard.shell.operand_uses import NO_FILES, OPERAND_READERS, later_operands
from cru.core.guard.shell.option_effects import (
    GIT_OPTIONS,
    HARMLESS_WORDS,
    OPTION_EFFECTS,
    OptionEffect,
    OptionUse,
    ProgramOptions,
    split_option,
)
from cru.core.guard.shell.program_names import known_words
from cru.core.guard.shell.programs import names
from cru.core.guard.shell.subcommands import find_subcommands
from cru.core.guard.shell.syntax import EXPANSION
from cru.core.guard.shell.unknown_options import ReadWords, read_words


class _TableOption(Struct, frozen=True):
    """An option of the table, read.

    takes_value: in its word or the next one; may_take_value: in its word
    condition: what must be in its value; beginning with `^`, at its start, with `!^`, not at its start
    """

    name: str
    takes_value: bool
    condition: str
    effect: OptionEffect
    may_take_value: bool = False


def find_option_uses(words: tuple[str, ...], *, reads_operands: bool = True) -> tuple[OptionUse, ...]:
    """In the order of the words; () for a program that is in no table. words: with EXPANSION for the `$` of a variable, or of what
    may be any text; reads_operands: that git is given files outside counts"""
    words = known_words(words)
    name = words[0]
    table = OPTION_EFFECTS.get(name)
    tables = [table] if table is not None else []
    if name == "git" and len(words) > 1 and words[1] in GIT_OPTIONS:
        tables.append(GIT_OPTIONS[words[1]])
    command = find_known_command(name, words, any(table.has_words for table in tables))
    readers = [
        _Reader(words, table, command.options.values if command and table.has_any_dashes else ()) for table in tables
    ]
    uses: dict[int, list[OptionUse]] = {}
    for reader in readers:
        for at, use in reader.read():  # what is short may be short for options of both tables
            uses.setdefault(at, []).append(use)
    read = _read_words(words, command, tables)
    for at, length in read.unknown.items():
        if at != 1 or words[1] not in {word.partition("/")[0] for table in tables for word in table.subcommands}:
            uses.setdefault(at, []).append(OptionUse(words[at], length, OptionEffect.UNKNOWN))
    merged = [_longest(uses[at]) for at in sorted(uses)]
    if name in OPERAND_READERS and (reads_operands or name != "git"):
        merged += OPERAND_READERS[name](words, read)
    return tuple(OptionUse(use.word.replace(EXPANSION, "$"), use.length, use.effect) for use in merged)


def _read_words(words: tuple[str, ...], command: KnownCommand | None, tables: list[ProgramOptions]) -> ReadWords:
    """Of a program whose harmless options are not known, any word may be an operand."""
    return ReadWords({}, tuple(range(1, len(words)))) if command is None else read_words(words, command, tables)


def _longest(uses: list[OptionUse]) -> OptionUse:
    """One use of a word that has several: its first effect, and all that the rule must write out of it."""
    return OptionUse(uses[0].word, max(use.length for use in uses), uses[0].effect)


def takes_options(words: tuple[str, ...]) -> bool:
    """Whether a rule may have to write out options of the command's program."""
    name = known_words(words)[0]
    return name in OPTION_EFFECTS or name in TABLES


def may_become_option(words: tuple[str, ...], places: tuple[int, ...], any_name: bool) -> bool:
    """Whether names of files in these places of the words could be read as an option or subcommand of the table.

    any_name: the names may begin with a dash
    """
    words = known_words(words)
    name = words[0]
    if name in OPTION_EFFECTS and OPTION_EFFECTS[name].subcommands and 1 in places:
        return True
    if OPERAND_READERS.get(name) is later_operands:  # one name may become two
        return True
    if not any_name:
        return False
    if name == "git":
        return len(words) > 1 and words[1] not in _GIT_FILES
    return name in OPTION_EFFECTS


def names_may_do_more(words: tuple[str, ...], globs: Mapping[int, str]) -> bool:
    """Whether files with names that fit could be more to the program than files: a script, a subcommand, a variable, an option's value.

    globs: the words in these places, with EXPANSION for what may be any text"""
    marked = tuple(globs.get(at, word) for at, word in enumerate(words))
    plain = find_option_uses(words, reads_operands=False)
    uses = find_option_uses(marked, reads_operands=False)
    beginnings = {word.replace(EXPANSION, "$"): word.index(EXPANSION) for word in globs.values()}
    is_fixed = all(use.length <= beginnings.get(use.word, use.length) for use in uses)
    if len(uses) > len(plain) or not is_fixed:
        return True
    # the second name that a glob finds stands in the place of what follows an option's value
    doubled = tuple(form for at, word in enumerate(marked) for form in (word, word)[: 2 if at in globs else 1])
    return known_words(words)[0] in OPERAND_READERS and len(find_option_uses(doubled, reads_operands=False)) > len(
        plain
    )


_GIT_PATHS = names("add checkout diff grep log ls-files mv reset restore rev-list rm shortlog show status")
"""Words of git that take no option behind `--`; others hand it on to another git without the `--` (`pull`, `remote update`), or read what
stands there as a revision after all (`blame`)."""


def end_of_options(words: tuple[str, ...]) -> int:
    """The place of the `--` behind which git takes no options, the count of words if there is none for sure: it may be an option's
    value."""
    if words[0] != "git" or "--" not in words[2:] or words[1] not in _GIT_PATHS:
        return len(words)
    at, key = words.index("--", 2), f"git {words[1]}"
    before = words[at - 1]
    is_plain = not before.startswith("-") or (key in TABLES and options_of(key).values.get(before) == "")
    return at if is_plain else len(words)


_GIT_FILES = frozenset(
    ["add", "checkout", "commit", "ls-files", "mv", "reset", "restore", "rm", "stage", "status", "switch"]
)
"""Words of git behind which none of the options in the table is taken."""


class _OptionIndex(Struct, frozen=True):
    """The options of a program by how they are written.

    long: with two dashes, or as whole words
    whole: of several letters behind one dash, among others of one letter
    letters: by their letter
    prefixes: by how their words begin
    """

    long: tuple[_TableOption, ...]
    whole: tuple[_TableOption, ...]
    letters: dict[str, list[_TableOption]]
    prefixes: tuple[_TableOption, ...]


@lru_cache(maxsize=64)
def _index(table: ProgramOptions) -> _OptionIndex:
    options: list[_TableOption] = []
    by_effect = {OptionEffect.RUNS: table.runs, OptionEffect.WRITES: table.writes, OptionEffect.SENDS: table.sends}
    for effect, texts in by_effect.items():
        for name, taking, condition in map(split_option, sorted(texts)):
            options.append(_TableOption(name, taking == "=", condition, effect, bool(taking)))
    prefixes = tuple(
        _TableOption(option.name[:-1], False, "", option.effect) for option in options if option.name.endswith("*")
    )
    options = [option for option in options if not option.name.endswith("*")]
    letters: dict[str, list[_TableOption]] = {}
    for option in options:
        if len(option.name) == 2 and option.name[0] == "-":
            letters.setdefault(option.name[1], []).append(option)
    return _OptionIndex(
        tuple(option for option in options if option.name.startswith("--") or table.has_words),
        tuple(option for option in options if len(option.name) > 2 and not option.name.startswith("--")),
        letters,
        prefixes,
    )


class _Reader:
    """One pass over the words of a command."""

    def __init__(self, words: tuple[str, ...], table: ProgramOptions, others: Collection[str] = ()) -> None:
        """others: names of further options, which are short for none"""
        self.words = words
        self._others = others
        self._table = table
        self._options = _index(table)

    def read(self) -> list[tuple[int, OptionUse]]:
        """Each with the place of its word."""
        subcommands = find_subcommands(self.words, self._table.subcommands)
        uses = [(at, OptionUse(self.words[at], len(self.words[at]), OptionEffect.RUNS)) for at in subcommands]
        others = (at for at in range(1, len(self.words)) if at not in subcommands)
        return [*uses, *((at, use) for at in others for use in self._word(at))]

    def _word(self, at: int) -> Iterator[OptionUse]:
        word = self.words[at]
        prefix = next((option for option in self._options.prefixes if word.startswith(option.name)), None)
        if prefix is not None and _is_harmless(prefix, word):
            return
        if prefix is not None:
            yield OptionUse(word, len(prefix.name), prefix.effect)
        elif word.startswith("--") or (self._table.has_words and word.startswith("-")):
            yield from self._long_option(at)
        elif self._table.has_any_dashes and len(word.partition("=")[0]) > 2 and word.startswith("-"):
            yield from [*self._long_option(at)] or self._cluster(at, 1)
        elif len(word) > 1 and word.startswith("-"):
            yield from self._whole_word(at) or self._cluster(at, 1)
        elif self._table.has_bare_letters and at == 1:
            yield from self._cluster(at, 0)

    def _long_option(self, at: int) -> Iterator[OptionUse]:
        head, equals, value = self.words[at].partition("=")
        written = head
        head = "--" + head.lstrip("-") if self._table.has_any_dashes else head
        plain = "-" + head.lstrip("-") if self._table.has_words else head
        if EXPANSION in head:
            yield from self._unfinished_name(at, plain.partition(EXPANSION)[0])
            return
        for option in self._options.long:
            is_meant = option.name == head or (self._table.has_words and option.name == plain)
            is_short = self._table.is_abbreviated and len(head) > 2 and head not in self._others
            if is_meant or (is_short and option.name.startswith(head)):
                text = value if equals else self._next(at)
                if _applies(option, text):
                    yield OptionUse(self.words[at], len(written), option.effect)
                    return

    def _unfinished_name(self, at: int, beginning: str) -> Iterator[OptionUse]:
        """A word in whose name a value stands: any option that begins so."""
        for option in (*self._options.prefixes, *self._options.long):
            if option.name.startswith(beginning):
                yield OptionUse(self.words[at], len(self.words[at]), option.effect)
                return

    def _whole_word(self, at: int) -> list[OptionUse]:
        """An option of several letters with one dash, among those of one letter."""
        head = self.words[at].partition("=")[0]
        return [
            OptionUse(self.words[at], len(head), option.effect)
            for option in self._options.whole
            if option.name == head and _applies(option, self._next(at))
        ]

    def _cluster(self, at: int, start: int) -> Iterator[OptionUse]:
        """Letters in one word; the first that takes a value ends it, but without a dash the values are words of their own."""
        word = self.words[at]
        use, taken = None, 0
        for index, letter in enumerate(word[start:], start):
            options = self._options.letters.get(letter, ())
            following = self._next(at + taken)
            value = word[index + 1 :] if start and index + 1 < len(word) else following
            applying = next((option for option in options if _applies(option, value)), None)
            if applying is not None:
                use = OptionUse(word, index + 1, use.effect if use else applying.effect)
            if letter == EXPANSION:  # any letters
                yield OptionUse(word, len(word), use.effect if use else OptionEffect.UNKNOWN)
                return
            if letter in self._table.valued or any(option.may_take_value for option in options):
                if start:
                    break
                taken += 1
        if use is not None:
            yield use

    def _next(self, at: int) -> str:
        return self.words[at + 1] if at + 1 < len(self.words) else ""


def _is_harmless(prefix: _TableOption, word: str) -> bool:
    """Whether all that stands behind the prefix, separated by commas, is known to be harmless; what is no option is the value of one, or
    a file as any operand."""
    known = HARMLESS_WORDS.get(prefix.name)
    if known is None:
        return False
    words = word[len(prefix.name) :].split(",")
    return EXPANSION not in word and all(
        not part.startswith(("-", "@")) or part.partition("=")[0] in known for part in words
    )


def _applies(option: _TableOption, value: str) -> bool:
    """Whether it does with this value what the table says, or may: what a variable holds is not known."""
    if option.effect is OptionEffect.WRITES and option.takes_value and value in NO_FILES:
        return False
    if option.condition.startswith("^"):
        beginning, mark, _ = value.partition(EXPANSION)
        start = option.condition[1:]
        return beginning.startswith(start) or (bool(mark) and start.startswith(beginning))
    if option.condition.startswith("!^"):
        return not value.startswith(option.condition[2:])
    if option.condition == ":":  # what it stands behind is no path
        value = value.partition("/")[0]
    return option.condition in value or EXPANSION in value
