"""Programs whose operands say what they do: scripts, files to write to, formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TypeAlias

from msgspec import Struct

from cru.core.guard.shell.options import NO_FILES, OptionEffect, OptionUse
from cru.core.guard.shell.programs import CODE_VARIABLE_PREFIXES, VARIABLES
from cru.core.guard.shell.scripts import is_plain_awk, is_plain_sed
from cru.core.guard.shell.syntax import EXPANSION


class ReadWords(Struct, frozen=True):
    """What the words behind a command's own are.

    unknown: by their place, how much of a word is unknown
    operands: places of words that are neither options nor their values
    values: places of words that are the value of the one before
    """

    unknown: dict[int, int] = {}
    operands: tuple[int, ...] = ()
    values: tuple[int, ...] = ()


OperandReader: TypeAlias = Callable[[tuple[str, ...], ReadWords], list[OptionUse]]


def later_operands(words: tuple[str, ...], read: ReadWords) -> list[OptionUse]:
    """A program that writes to the file that it is given behind the one that it reads."""
    later = (words[at] for at in read.operands[1:])
    return [OptionUse(word, len(word), OptionEffect.WRITES) for word in later if word not in NO_FILES]


_NAMES_AWK_FILE = re.compile(r"-[fE].*|--(file|exec)(=.*)?", re.DOTALL)
_NAMES_SCRIPT = re.compile(r"-[nErsuz]*[ef].*|--(expression|file)(=.*)?", re.DOTALL)


def _sed_scripts(words: tuple[str, ...], read: ReadWords) -> list[OptionUse]:
    """Scripts are values of `-e`; without one before it the first operand is. Where `-i` takes the next word (BSD), it is the second, and
    `-l` takes none there: what is a value here may be the script."""
    others = {*read.operands, *read.values}
    named = [at for at, word in enumerate(words) if at not in others and _NAMES_SCRIPT.fullmatch(word)]
    first = read.operands if read.unknown else read.operands[:1]
    if first and words[first[0] - 1].endswith(("i", "I", "--in-place")) and words[first[0]][:1] in ("", "."):
        first = read.operands[:2]
    if named and not read.unknown:  # where options end at the first operand (POSIX), it may be the script before them
        first = tuple(at for at in first if at < named[0] and words[at][:1] not in ("", "."))  # `-i .bak`: no script
    values = [at for at in read.values if not words[at - 1].endswith(("f", "--file"))]
    scripts = [(at, words[at]) for at in (*first, *values)]
    return _not_plain(words, [*_named_scripts(words, "e", "--expression"), *scripts], is_plain_sed)


def _awk_scripts(words: tuple[str, ...], read: ReadWords) -> list[OptionUse]:
    """The first operand is the script, and with `-e` it may be: not every awk has that. Nor has every one long options, and then the value
    of one may be the script."""
    values = (at for at in read.values if words[at - 1].startswith("--"))
    first = read.operands if read.unknown else read.operands[:1]
    if first and not read.unknown and any(map(_NAMES_AWK_FILE.fullmatch, words[: first[0]])):
        first = ()
    named = [*_named_scripts(words, "e", "--source")]
    # one script may end in the middle of what the next one goes on with
    is_plain = is_plain_awk("\n".join(script for _, script in named))
    joined = () if is_plain else dict.fromkeys(at for at, _ in named)
    scripts = [(at, words[at]) for at in (*first, *values) if at not in joined]
    hosts = (words[at] for at in read.operands if words[at].startswith("/inet"))
    return [
        *(OptionUse(words[at], len(words[at]), OptionEffect.RUNS) for at in joined),
        *_not_plain(words, scripts, is_plain_awk),
        *(OptionUse(word, len(word), OptionEffect.SENDS) for word in hosts),
    ]


def _named_scripts(words: tuple[str, ...], letter: str, long_option: str) -> Iterator[tuple[int, str]]:
    """Whatever may be the value of an option that takes a script, with the place of its word. Any letter may be the option's."""
    for at, word in enumerate(words):
        head, equals, value = word.partition("=")
        if len(head) > 2 and long_option.startswith(head):
            if equals:
                yield at, value
            elif at + 1 < len(words):
                yield at + 1, words[at + 1]
        elif word.startswith("-") and not word.startswith("--") and letter in word:
            value = word.partition(letter)[2]
            if value:
                yield at, value
            elif at + 1 < len(words):
                yield at + 1, words[at + 1]


def _not_plain(
    words: tuple[str, ...], scripts: list[tuple[int, str]], is_plain: Callable[[str], bool]
) -> list[OptionUse]:
    """The words that hold a script that is not plain, each once."""
    places = dict.fromkeys(at for at, script in scripts if not is_plain(script))
    return [OptionUse(words[at], len(words[at]), OptionEffect.RUNS) for at in places]


def _processes(words: tuple[str, ...], read: ReadWords) -> list[OptionUse]:
    """Words that show the environment of programs, with their keys."""
    return [
        OptionUse(word, len(word), OptionEffect.SENDS)
        for at, word in enumerate(words[1:], 1)
        if "environ" in word or EXPANSION in word or (at not in read.values and _has_bsd_e(word))
    ]


def _has_bsd_e(word: str) -> bool:
    """`ps e` shows the environment, `ps -e` does not, unless it is read as `ps e` after all."""
    letters = word.lstrip("-")
    as_bsd = word == letters or not {"u", "x"}.isdisjoint(letters)
    return "e" in letters and as_bsd and re.fullmatch("-?[A-Za-z]+", word) is not None


def _files_outside(words: tuple[str, ...], read: ReadWords) -> list[OptionUse]:
    """`git diff` compares any two files when one of them is not in the repository, and shows none that is given alone; `git hash-object
    -w` keeps any."""
    if words[1:2] not in (("diff",), ("hash-object",), ("interpret-trailers",), ("merge-file",)):
        return []
    if words[1] == "diff" and _has_one_path(words[2:]):
        return []
    return [
        OptionUse(word, len(word), OptionEffect.SENDS)
        for word in (words[at] for at in (*read.operands, *read.values))
        if word not in NO_FILES and (word.startswith(("/", "~")) or _may_lead_up(word) or EXPANSION in word)
    ]


def _may_lead_up(word: str) -> bool:
    """Whether `..` stands in the path, or may for a shell other than bash 5.2 (`.*`)."""
    return any(name.startswith(".") and fnmatchcase("..", name) for name in word.split("/"))


def _has_one_path(words: tuple[str, ...]) -> bool:
    """Whether one word at most may be a path, or a revision, and is one word for certain."""
    end = words.index("--") if "--" in words else len(words)
    paths = [word for word in words[:end] if word == "-" or not word.startswith("-")] + [*words[end + 1 :]]
    return len(paths) < 2 and not any(char in word for word in words for char in f"{EXPANSION}*?[{{`")


def _variables(words: tuple[str, ...], read: ReadWords) -> list[OptionUse]:
    """`make CC=x` names what recipes start, and what programs find by a variable may stand in the project (`XDG_CONFIG_HOME=1`): only
    numbers and yes or no for names that say so are harmless. Recipes run goals (`$@`), and names are expanded (`X$(id)=1`)."""
    uses = []
    for at, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if word.startswith("-") and at not in read.operands:  # behind `--` all are operands
            continue
        if equals and not (_is_plain_switch(value) and _is_switch_name(name.strip().rstrip(":?+").strip())):
            uses.append(OptionUse(word, len(name) + 1, OptionEffect.RUNS))
        elif not equals and not _GOAL.fullmatch(word):
            uses.append(OptionUse(word, len(word), OptionEffect.RUNS))
    return uses


def _is_plain_switch(value: str) -> bool:
    return value.isdigit() or value.lower() in _SWITCHES


def _is_switch_name(name: str) -> bool:
    """Whether a number or a yes or no is all that anybody reads there."""
    name = name.upper()
    if not _PLAIN_NAME.fullmatch(name) or name.startswith(_OF_PROGRAMS):
        return False
    return name in VARIABLES.switches or name.startswith(_SWITCH_BEGINNINGS) or f"_{name}".endswith(_SWITCH_ENDINGS)


_OF_PROGRAMS = tuple(prefix.upper() for prefix in CODE_VARIABLE_PREFIXES)
_GOAL = re.compile(r"(?!-)[\w./%@+:,-]*", re.ASCII)
_PLAIN_NAME = re.compile(r"[A-Z0-9]+(_[A-Z0-9]+)*")
_SWITCH_BEGINNINGS = tuple(VARIABLES.switch_beginnings)
_SWITCH_ENDINGS = tuple(VARIABLES.switch_endings)
_SWITCHES = frozenset(["", "yes", "no", "true", "false", "on", "off", "y", "n"])

OPERAND_READERS: dict[str, OperandReader] = {
    "awk-script": _awk_scripts,
    "files-outside": _files_outside,
    "processes": _processes,
    "sed-script": _sed_scripts,
    "variables": _variables,
    "written-files": later_operands,
}
"""By the field `operands` of a program's facts."""
