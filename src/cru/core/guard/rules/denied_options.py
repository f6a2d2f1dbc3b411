"""The options that a deny or ask rule names, as a set: `rm -rf *` means every `rm` with these two, however they are written and wherever
they stand. The letters that mean a long option are from the programs' documents; without a row a letter means only itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from signal import Signals

from msgspec import Struct

from cru.core.base.files.glob import StarGlob, matches_text
from cru.core.guard.shell.analysis import Words
from cru.core.guard.shell.options import HARMLESS, options_of
from cru.core.guard.shell.programs import CODE_RUNNERS, COMMANDS, SUBCOMMAND_PROGRAMS, WRAPPERS, base_name, names

_LETTERED = {name for name, facts in COMMANDS.items() if facts.letters}
_PROGRAMS = {name.partition(" ")[0] for name in _LETTERED}
_SENDERS = names("kill pkill killall")
_LONG = re.compile(r"--\w[\w-]*\w(?:=.*)?", re.DOTALL)
_CLUSTER = re.compile(r"-[A-Za-z0-9]+")
_MOST_LETTERS = 7
"""Of a rule's word with one dash; a longer one, or one with a letter twice, is the name of an option (`-delete`)."""
_MOST_COMMANDS = 3
"""Commands of one candidate that are compared as a whole."""
_STAR = "\0"


class DeniedOptions(Struct, frozen=True):
    """What a rule says of options.

    program: its glob; "": any program
    key: of the tables, "" if the rule does not say which program it means
    options: what a command must have, each as `--name`, `--name=value`, `-letter` or `-word`
    rest: the rule without them
    leads: they stand directly behind the program, and further behind they would be another one's
    """

    program: StarGlob
    key: str
    options: frozenset[str]
    rest: StarGlob
    leads: bool


@lru_cache(maxsize=4096)
def read_denied_options(pattern: StarGlob) -> DeniedOptions | None:
    """Return what the rule's pattern says of options, None if it names none."""
    words = _STAR.join(pattern).replace(f"{_STAR}-", f"{_STAR} -").split(" ")
    key = _key_of(words)
    end = words.index("--") if "--" in words else len(words)
    options: set[str] = set()
    rest = words[:1]
    at = first = 1
    while at < end:
        plain = words[at].strip(_STAR)
        if _STAR in plain or not (_LONG.fullmatch(plain) or _CLUSTER.fullmatch(plain)):
            first += not options
            rest.append(words[at])
            at += 1
            continue
        value = words[at + 1] if plain == words[at] and at + 1 < end and _STAR not in words[at + 1] else ""
        named, taken = _options_of_rule(plain, value, key)
        options |= named
        rest += [_STAR] if plain != words[at] and not rest[-1].endswith(_STAR) else []
        at += 1 + taken
    if not options:
        return None
    pieces = " ".join((*rest, *words[end:])).split(_STAR)
    is_runner = base_name(words[0]) in WRAPPERS | CODE_RUNNERS | SUBCOMMAND_PROGRAMS
    return DeniedOptions(tuple(words[0].split(_STAR)), key, frozenset(options), tuple(pieces), first == 1 and is_runner)


def without_denied_options(words: Words, begins: Iterable[int], denied: DeniedOptions) -> Iterator[Words]:
    """Yield the command without the rule's options, and without any, if it has all that the rule names.

    begins: places of words that may begin a command
    """
    end, commands = -1, 0
    for start in begins:
        # behind the first place, up to a `--`, there are no options that are not the first one's, too
        program = _named_program(words[start], denied.program) if start > end else ""
        if not program or commands == _MOST_COMMANDS:
            continue
        end = next((at for at in range(start, len(words)) if words[at] == "--"), len(words))
        options_at = _read_options((program, *words[start + 1 : end]), denied)
        if denied.options.issubset(option for options, _ in options_at.values() for option in options):
            commands += 1
            yield from _reduced_commands((program, *words[start + 1 :]), options_at, denied)


def _reduced_commands(
    words: Words, options_at: Mapping[int, tuple[frozenset[str], int]], denied: DeniedOptions
) -> Iterator[Words]:
    named: set[int] = set()
    others = {words.index("--")} if "--" in words and "--" not in denied.rest[0].split(" ") else set()
    for at, (options, taken) in options_at.items():
        places = others if denied.options.isdisjoint(options) else named
        places.update(range(at, at + 1 + taken))
    for left_out in (named, named | others):
        yield tuple(word for at, word in enumerate(words) if at not in left_out)


def _named_program(word: str, program: StarGlob) -> str:
    """Return the rule's program as the word has it: with or without its folder, or behind a letter or a `=`; "" if it is another."""
    behind_letter = word[2:] if word.startswith("-") and not word.startswith("--") else ""
    spellings = (word, base_name(word), base_name(word.partition("=")[2]), behind_letter)
    return next((each for each in spellings if each and matches_text(program, each)), "")


def _key_of(words: Iterable[str]) -> str:
    """Return under which name the tables have the command: its first known program, with its subcommands."""
    key = ""
    for word in words:
        name = word.strip(_STAR)
        longer = f"{key} {name}" if key else base_name(name)
        if longer in _LETTERED or longer in HARMLESS or longer in _PROGRAMS:
            key = longer
    return key


def _options_of_rule(word: str, value: str, key: str) -> tuple[set[str], int]:
    """Return the options that a word of a rule names, and how many words behind it are its value.

    value: the word behind it; "": a star, or nothing
    """
    if signal := _signal(word, key):
        return {signal}, 0
    if word.startswith("--"):
        head, equals, _ = word.partition("=")
        takes = bool(value) and not equals and _takes_value(head, key)
        return {f"{head}={value}" if takes else word}, int(takes)
    if _has_words(key) or len(word) > _MOST_LETTERS or len(set(word)) < len(word):
        return {word}, 0
    options: set[str] = set()
    for at, letter in enumerate(word[1:], 1):
        meant = _meanings(letter, key) or (f"-{letter}",)
        if _takes_value(f"-{letter}", key):
            own = word[at + 1 :]
            options.update(_with_value(option, own or value, key) if own or value else option for option in meant)
            return options, int(bool(value) and not own)
        options.update(meant)
    return options, 0


def _read_options(words: Words, denied: DeniedOptions) -> dict[int, tuple[frozenset[str], int]]:
    """Return by the places of a command's options what each of them means, and how many words behind it are its value."""
    key = denied.key or _key_of(words)
    options_at: dict[int, tuple[frozenset[str], int]] = {}
    at = 1
    while at < len(words):
        taken = 0
        if len(words[at]) > 1 and words[at].startswith("-"):
            following = words[at + 1] if at + 1 < len(words) else ""
            if words[at].startswith("--"):
                options_at[at] = _long_option(words[at], following, key, denied.options)
            else:
                options_at[at] = _letters(words[at], following, key)
            taken = options_at[at][1]
        elif denied.leads:
            break
        at += 1 + taken
    return options_at


@lru_cache(maxsize=1024)
def _long_option(word: str, following: str, key: str, rule_options: frozenset[str]) -> tuple[frozenset[str], int]:
    """Return an option with two dashes under each name that it may be short for."""
    head, equals, value = word.partition("=")
    known = _long_names(key)
    taken = int(not equals and bool(following) and _takes_value(head, key))
    longer = (option.partition("=")[0] for option in (*known, *rule_options))
    is_whole = head in known or head in _table(key)
    names = {head, *(() if is_whole else (option for option in longer if option.startswith(head) and len(head) > 2))}
    value = value if equals else following
    letters = {f"-{known[name]}" for name in names if len(known.get(name, "")) == 1}  # of a rule for no certain program
    valued = (_with_value(name, value, key) for name in names if equals or taken)
    return frozenset((*names, *letters, word, *valued)), taken


@lru_cache(maxsize=1024)
def _letters(word: str, following: str, key: str) -> tuple[frozenset[str], int]:
    """Return each letter of a word with one dash, and the word itself."""
    options = {word, word.partition("=")[0]}
    if signal := _signal(word, key):
        return frozenset((*options, signal)), 0
    if _has_words(key):
        return frozenset(options), 0
    for at, letter in enumerate(word[1:], 1):
        if not letter.isalnum():
            break
        meant = (f"-{letter}", *_meanings(letter, key))
        options.update(meant)
        if _takes_value(f"-{letter}", key):
            value = word[at + 1 :] or following
            options.update(_with_value(option, value, key) for option in meant)
            return frozenset(options), int(bool(following) and at + 1 == len(word))
    return frozenset(options), 0


@lru_cache(maxsize=4096)
def _meanings(letter: str, key: str) -> tuple[str, ...]:
    return tuple(option for option, letters in _long_names(key).items() if letter in letters)


@lru_cache(maxsize=4096)
def _takes_value(option: str, key: str) -> bool:
    letters = option[1:] if len(option) == 2 else _long_names(key).get(option, "")
    if any(_table(key).get(f"-{letter}") == "=" or letter in _letters_with_value(key) for letter in letters):
        return True
    return _table(key).get(option) == "=" or (option == "--signal" and key in _SENDERS)


def _letters_with_value(key: str) -> str:
    return COMMANDS[key].letters_with_value if key in COMMANDS else ""


@lru_cache(maxsize=64)
def _long_names(key: str) -> Mapping[str, str]:
    """Return the letters that mean a long option, by its name."""
    return {f"--{name}": letters for name, letters in COMMANDS[key].letters.items()} if key in COMMANDS else {}


def _with_value(option: str, value: str, key: str) -> str:
    is_signal = option == "--signal" and key in _SENDERS
    return f"{option}={_signal_name(value) if is_signal else value}"


def _signal(word: str, key: str) -> str:
    """Return what `kill -9` means, "" if the word is no signal."""
    name = _signal_name(word[1:]) if key in _SENDERS else ""
    return f"--signal={name}" if name.isdigit() or f"SIG{name}" in Signals.__members__ else ""


def _signal_name(text: str) -> str:
    """Return the name without `SIG`, also for a number; other texts as they are."""
    try:
        return Signals(int(text)).name.removeprefix("SIG")
    except ValueError:
        return text.upper().removeprefix("SIG")


def _table(key: str) -> Mapping[str, str]:
    return options_of(key).harmless if key in HARMLESS else {}


def _has_words(key: str) -> bool:
    """Return whether the program's options are whole words with one dash (`find -name`)."""
    program = key.partition(" ")[0]
    return program in COMMANDS and COMMANDS[program].style == "words"
