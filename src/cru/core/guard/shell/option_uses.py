"""Which words of a command make its program do more than its name says: options in any spelling, subcommands, operands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from cru.core.guard.shell.operand_uses import OPERAND_READERS, OperandReader, ReadWords, later_operands
from cru.core.guard.shell.options import (
    HARMLESS,
    CommandOptions,
    KnownCommand,
    OptionEffect,
    OptionUse,
    find_known_command,
    known_names,
    options_of,
)
from cru.core.guard.shell.programs import COMMANDS, KINDS, known_words
from cru.core.guard.shell.syntax import EXPANSION

MOST_OPTIONS = 50
"""Words before a subcommand, each of which may be a value; behind more of them nothing is read."""


def find_option_uses(words: tuple[str, ...], *, reads_operands: bool = True) -> tuple[OptionUse, ...]:
    """Return the uses in the order of the words; () for a program that no file names.

    words: with EXPANSION for the `$` of a variable, or of what may be any text
    reads_operands: that git is given files outside counts
    """
    words = known_words(words)
    keys = tuple(key for key in _names_of(words) if key in COMMANDS and COMMANDS[key].does_more)
    command = find_known_command(words)
    tables = [options_of(key) for key in keys]
    uses: dict[int, list[OptionUse]] = {}
    for table in tables:
        others = options_of(command.key).harmless if command and table.has_any_dashes else ()
        for at, use in _EffectReader(
            words, table, others
        ).read():  # what is short may be short for options of both tables
            uses.setdefault(at, []).append(use)
    read = _read_words(words, command, keys)
    for at, length in read.unknown.items():
        if at != 1 or words[1] not in {word.partition("/")[0] for table in tables for word in table.running}:
            uses.setdefault(at, []).append(OptionUse(words[at], length, OptionEffect.UNKNOWN))
    merged = [_longest(uses[at]) for at in sorted(uses)]
    if (read_operands := _operand_reader(words[0])) and (reads_operands or words[0] != "git"):
        merged += read_operands(words, read)
    return tuple(OptionUse(use.word.replace(EXPANSION, "$"), use.length, use.effect) for use in merged)


def _names_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a file may call options of a program, and of a subcommand of git, that do more."""
    return (words[0], f"git {words[1]}") if words[0] == "git" and len(words) > 1 else words[:1]


def _operand_reader(name: str) -> OperandReader | None:
    return OPERAND_READERS.get(COMMANDS[name].operands) if name in COMMANDS else None


def _longest(uses: list[OptionUse]) -> OptionUse:
    """Return one use of a word that has several: its first effect, and all that the rule must write out of it."""
    return OptionUse(uses[0].word, max(use.length for use in uses), uses[0].effect)


def _read_words(words: tuple[str, ...], command: KnownCommand | None, others: tuple[str, ...]) -> ReadWords:
    """Return what the words behind a command's own are. Behind an unknown option a word that may be its value is an operand, and of a
    program whose harmless options are not known any word may be one.

    others: keys of options that do more; how these are used is not looked at
    """
    if command is None or options_of(command.key).covers_everything:
        return ReadWords({}, tuple(range(command.count if command else 1, len(words))))
    known = known_names(command.key, others)
    unknown = {command.unknown_word: len(words[command.unknown_word])} if command.unknown_word else {}
    at, has_letters = command.count, any(options_of(key).has_bare_letters for key in others)
    operands: list[int] = []
    taken: list[int] = []
    while at < len(words):
        word, values, length = words[at], 0, 0
        if word == "--" and not known.options.has_words:
            break
        if len(word) > 1 and word.startswith("-"):
            length, values = known.judge(word)
        elif has_letters and at == 1:
            length, values = known.judge_letters(word, 0)
        else:
            operands.append(at)
            if known.options.ends_at_operand and not (at - 1 in unknown and "=" not in words[at - 1]):
                break
        if length:
            unknown[at] = length
        taken += range(at + 1, min(at + 1 + values, len(words)))
        at += 1 + values
    return ReadWords(unknown, (*operands, *range(at + 1, len(words))), tuple(taken))


# what a glob or a variable may become --------------------------------------------------------------------------------------------


def takes_options(words: tuple[str, ...]) -> bool:
    """Return whether a rule may have to write out options of the command's program."""
    name = known_words(words)[0]
    return name in HARMLESS or (name in COMMANDS and COMMANDS[name].does_more)


def may_become_option(words: tuple[str, ...], places: tuple[int, ...], any_name: bool) -> bool:
    """Return whether names of files in these places of the words could be read as an option or subcommand that does more.

    any_name: the names may begin with a dash
    """
    words = known_words(words)
    name = words[0]
    if name not in COMMANDS:
        return False
    if COMMANDS[name].running and 1 in places:
        return True
    if _operand_reader(name) is later_operands:  # one name may become two
        return True
    if any_name and name == "git":
        return len(words) > 1 and words[1] not in KINDS.git_files
    return any_name and COMMANDS[name].does_more


def names_may_do_more(words: tuple[str, ...], globs: Mapping[int, str]) -> bool:
    """Return whether files with names that fit could be more to the program than files: a script, a subcommand, a variable, an option's
    value.

    globs: the words in these places, with EXPANSION for what may be any text
    """
    marked = tuple(globs.get(at, word) for at, word in enumerate(words))
    plain = find_option_uses(words, reads_operands=False)
    uses = find_option_uses(marked, reads_operands=False)
    beginnings = {word.replace(EXPANSION, "$"): word.index(EXPANSION) for word in globs.values()}
    is_fixed = all(use.length <= beginnings.get(use.word, use.length) for use in uses)
    if len(uses) > len(plain) or not is_fixed:
        return True
    # the second name that a glob finds stands in the place of what follows an option's value
    doubled = tuple(form for at, word in enumerate(marked) for form in (word, word)[: 2 if at in globs else 1])
    has_reader = _operand_reader(known_words(words)[0]) is not None
    return has_reader and len(find_option_uses(doubled, reads_operands=False)) > len(plain)


def end_of_options(words: tuple[str, ...]) -> int:
    """Return the place of the `--` behind which git takes no options, the count of words if there is none for sure: it may be an option's
    value."""
    if words[0] != "git" or "--" not in words[2:] or words[1] not in KINDS.git_paths:
        return len(words)
    at, key = words.index("--", 2), f"git {words[1]}"
    before = words[at - 1]
    is_plain = not before.startswith("-") or (key in HARMLESS and options_of(key).harmless.get(before) == "")
    return at if is_plain else len(words)


# one pass over the words ---------------------------------------------------------------------------------------------------------


class _EffectReader:
    """The words of a command, each of which may be an option that does more: abbreviated, combined, with its value in the same word or
    the next."""

    def __init__(self, words: tuple[str, ...], options: CommandOptions, others: Collection[str] = ()) -> None:
        """others: names of further options, which are short for none"""
        self.words = words
        self._others = others
        self._options = options

    def read(self) -> list[tuple[int, OptionUse]]:
        """Return each use with the place of its word."""
        running = find_subcommands(self.words, self._options.running)
        uses = [(at, OptionUse(self.words[at], len(self.words[at]), OptionEffect.RUNS)) for at in running]
        others = (at for at in range(1, len(self.words)) if at not in running)
        return [*uses, *((at, use) for at in others for use in self._word(at))]

    def _word(self, at: int) -> Iterator[OptionUse]:
        word = self.words[at]
        prefix = next((option for option in self._options.prefixes if word.startswith(option.name)), None)
        if prefix is not None:
            if not self._is_harmless(prefix.name, word):
                yield OptionUse(word, len(prefix.name), prefix.effect)
        elif word.startswith("--") or (self._options.has_words and word.startswith("-")):
            yield from self._long_option(at)
        elif self._options.has_any_dashes and len(word.partition("=")[0]) > 2 and word.startswith("-"):
            yield from [*self._long_option(at)] or self._cluster(at, 1)
        elif len(word) > 1 and word.startswith("-"):
            yield from self._whole_word(at) or self._cluster(at, 1)
        elif self._options.has_bare_letters and at == 1:
            yield from self._cluster(at, 0)

    def _is_harmless(self, prefix: str, word: str) -> bool:
        """Return whether all that stands behind the prefix, separated by commas, is known to be harmless; what is no option is the value of
        one, or a file as any operand."""
        known = self._options.facts.harmless_parts.get(prefix, "").split()
        parts = word[len(prefix) :].split(",") if known and EXPANSION not in word else []
        return bool(parts) and all(not part.startswith(("-", "@")) or part.partition("=")[0] in known for part in parts)

    def _long_option(self, at: int) -> Iterator[OptionUse]:
        head, equals, value = self.words[at].partition("=")
        written = head
        head = "--" + head.lstrip("-") if self._options.has_any_dashes else head
        plain = "-" + head.lstrip("-") if self._options.has_words else head
        if EXPANSION in head:
            yield from self._unfinished_name(at, plain.partition(EXPANSION)[0])
            return
        for option in self._options.long:
            is_meant = option.name == head or (self._options.has_words and option.name == plain)
            is_short = self._options.is_abbreviated and len(head) > 2 and head not in self._others
            if is_meant or (is_short and option.name.startswith(head)):
                text = value if equals else self._next(at)
                if option.applies(text):
                    yield OptionUse(self.words[at], len(written), option.effect)
                    return

    def _unfinished_name(self, at: int, beginning: str) -> Iterator[OptionUse]:
        """Match an option whose name is only partly known (`--fo$X`) against every option that begins so."""
        for option in (*self._options.prefixes, *self._options.long):
            if option.name.startswith(beginning):
                yield OptionUse(self.words[at], len(self.words[at]), option.effect)
                return

    def _whole_word(self, at: int) -> list[OptionUse]:
        """Return an option of several letters with one dash, among those of one letter."""
        head = self.words[at].partition("=")[0]
        return [
            OptionUse(self.words[at], len(head), option.effect)
            for option in self._options.whole
            if option.name == head and option.applies(self._next(at))
        ]

    def _cluster(self, at: int, start: int) -> Iterator[OptionUse]:
        """Read letters in one word; the first that takes a value ends it, but without a dash the values are words of their own."""
        word = self.words[at]
        use, taken = None, 0
        for index, letter in enumerate(word[start:], start):
            options = self._options.letters.get(letter, ())
            following = self._next(at + taken)
            value = word[index + 1 :] if start and index + 1 < len(word) else following
            applying = next((option for option in options if option.applies(value)), None)
            if applying is not None:
                use = OptionUse(word, index + 1, use.effect if use else applying.effect)
            if letter == EXPANSION:  # any letters
                yield OptionUse(word, len(word), use.effect if use else OptionEffect.UNKNOWN)
                return
            if letter in self._options.valued or any(option.taking for option in options):
                if start:
                    break
                taken += 1
        if use is not None:
            yield use

    def _next(self, at: int) -> str:
        return self.words[at + 1] if at + 1 < len(self.words) else ""


# subcommands ---------------------------------------------------------------------------------------------------------------------


def find_subcommands(words: tuple[str, ...], running: Collection[str]) -> tuple[int, ...]:
    """Return the places of subcommands that run something, wherever options stand between.

    running: as CommandOptions has them; `bisect/run` is the second word, behind the first
    """
    return tuple(dict.fromkeys(_find_running(words, running))) if running else ()


def _find_running(words: tuple[str, ...], running: Collection[str]) -> Iterator[int]:
    seconds = {name.partition("/")[0] for name in running if "/" in name}
    firsts = list(islice(_places(words, 1), MOST_OPTIONS))
    if len(firsts) == MOST_OPTIONS:
        yield firsts[0]
    for first in firsts:
        if _may_be(words[first], running) and not _only_reads(words, first):
            yield first
        if EXPANSION not in words[first] and words[first] not in seconds:
            continue
        places = list(islice(_places(words, first + 1), MOST_OPTIONS))
        if len(places) == MOST_OPTIONS:
            yield places[0]
        for second in places:
            if _may_be(f"{words[first]}/{words[second]}", running):
                yield second


def _places(words: tuple[str, ...], start: int) -> Iterator[int]:
    """Yield where the first word may stand that is neither an option nor the value of one; which take a value is not known."""
    for at in range(start, len(words)):
        if words[at].startswith("-"):
            continue
        yield at
        if at == start or not words[at - 1].startswith("-") or "=" in words[at - 1]:
            return


def _may_be(word: str, running: Collection[str]) -> bool:
    beginning, mark, _ = word.partition(EXPANSION)
    return any(name.startswith(beginning) for name in running) if mark else word in running


def _only_reads(words: tuple[str, ...], first: int) -> bool:
    """Return whether the first word behind it says so, except for options that change nothing: `--get`, alone among the options, or
    `get`."""
    reading = KINDS.reading_words.get(words[first], frozenset())
    rest = [word for word in words[first + 1 :] if "".join(word.partition("=")[:2]) not in KINDS.reading_options]
    if not rest or rest[0] not in reading:
        return False
    return not rest[0].startswith("-") or not any(word.startswith("-") for word in rest[1:])
