"""Options that are known to be harmless, by program and subcommand: **the** tables, from the programs' documents. What an allow rule
covers without writing it out; an option that stands neither here nor in `option_effects` is unknown, and must be written out.

A table's key is a program, or a program and what it is to do (`git log`, `docker compose up`; `docker ps|images` are two keys). Its
value are options, separated by blanks: `-n` and `--name` take no value, `-n=` and `--name=` take one (the rest of the word, or the next
word), `-n[=]` and `--name[=]` may have one in the same word. `-abc=` is short for `-a -b -c=`, where options are no whole words. `-O*`
is every word that begins so, `-#` a number (`-5`). `@name` are the options of a group. `...` at the end: from the first word on that is
no option, the words belong to another program. `*` alone: the subcommand runs code of the project by its nature, so nothing has to be
written out but what `option_effects` lists.

Left out is what runs a program, writes to or reads from a file of its own, sends elsewhere than the words say, or switches a safeguard
off. A program with keys of several words has no other subcommands: one that is missing must be written out, too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from cru.core.guard.shell.harmless import containers, development, files, git, network, text


def _keys(text: str) -> Iterator[str]:
    """`git diff|show` are two."""
    *before, last = text.split(" ")
    return (" ".join((*before, name)) for name in last.split("|"))


_MODULES = (files, text, git, development, network, containers)
_ROWS = [(key, row, module.GROUPS) for module in _MODULES for keys, row in module.TABLE.items() for key in _keys(keys)]
TABLES = {key: row for key, row, _ in _ROWS}
_GROUPS = {key: groups for key, _, groups in _ROWS}
_BEGINNINGS = frozenset(" ".join(name.split()[:count]) for name in TABLES for count in range(1, len(name.split())))
_DEEPEST = max(len(name.split()) for name in TABLES)


class HarmlessOptions(Struct, frozen=True):
    """The options of one key.

    values: option -> how it takes a value: "", "=" or "[=]"
    prefixes: the same for the beginnings of words
    takes_numbers: a number is an option
    ends_at_operand: the first word that is no option ends the options
    covers_everything: nothing has to be written out
    """

    values: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    takes_numbers: bool = False
    ends_at_operand: bool = False
    covers_everything: bool = False


class KnownCommand(Struct, frozen=True):
    """What is known of a command by its first words.

    key: of the table
    count: of its words
    options: that are harmless
    unknown_word: the place of a subcommand that is in no table, 0 if there is none
    """

    key: str
    count: int
    options: HarmlessOptions
    unknown_word: int = 0


def find_known_command(program: str, words: tuple[str, ...], has_words: bool) -> KnownCommand | None:
    """program: its name without path and version; has_words: its options are whole words with one dash or two"""
    if program not in TABLES:
        return None
    key, count = program, 1
    for word in words[1:_DEEPEST]:
        if f"{key} {word}" not in TABLES:
            break
        key, count = f"{key} {word}", count + 1
    options = options_of(key, has_words)
    return KnownCommand(key, count, options, _unknown_subcommand(key, words, count, options))


def _unknown_subcommand(key: str, words: tuple[str, ...], count: int, options: HarmlessOptions) -> int:
    """The place of the first word that is neither an option nor the value of a known one, if it is in no table; 0 for none."""
    if key not in _BEGINNINGS:
        return 0
    for at in range(count, len(words)):
        is_value = at > count and options.values.get(words[at - 1]) == "="
        if not words[at].startswith("-") and not is_value:
            return 0 if f"{key} {words[at]}" in TABLES else at
    return 0


@cache
def options_of(key: str, has_words: bool = False) -> HarmlessOptions:
    tokens = list(_expanded(TABLES[key], _GROUPS[key]))
    values: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    for token in tokens:
        name, taking = _split(token)
        if name.endswith("*") and len(name) > 1:
            prefixes[name[:-1]] = taking
        elif name.startswith("--") or has_words or len(name) < 3:
            values[name] = taking
        else:
            values.update({**{f"-{letter}": "" for letter in name[1:-1]}, f"-{name[-1]}": taking})
    return HarmlessOptions(values, prefixes, "-#" in values, "..." in tokens, tokens == ["*"])


def _expanded(options: str, groups: dict[str, str]) -> Iterator[str]:
    for token in options.split():
        if token.startswith("@"):
            yield from _expanded(groups[token[1:]], groups)
        else:
            yield token


def _split(token: str) -> tuple[str, str]:
    for taking in ("[=]", "="):
        if token.endswith(taking):
            return token.removesuffix(taking), taking
    return token, ""
