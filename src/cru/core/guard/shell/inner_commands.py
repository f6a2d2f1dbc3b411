"""Which words of a command may begin another command, as far as what is known of programs says. Deny and ask rules look there."""

from __future__ import annotations

import re

from cru.core.guard.shell.options import HARMLESS
from cru.core.guard.shell.programs import (
    CODE_PROGRAMS,
    INTERPRETERS,
    KEYWORDS,
    KINDS,
    PLAIN_PROGRAMS,
    SHELLS,
    SUBCOMMAND_PROGRAMS,
    TABLED_PROGRAMS,
    WRAPPERS,
    base_name,
    is_listed,
)

_NO_FLAGS = re.compile("(?!)")
_PLAIN_FLAGS = {
    "command": _NO_FLAGS,
    "doas": _NO_FLAGS,
    "env": _NO_FLAGS,
    "exec": _NO_FLAGS,
    "nice": re.compile(r"-n|-n?-?[0-9]+|[0-9]+"),
    "nohup": _NO_FLAGS,
    "setsid": _NO_FLAGS,
    "stdbuf": re.compile(r"-[ioe][L0]"),
    "sudo": re.compile(r"-[EHSn]+"),
    "time": re.compile(r"-p"),
    "timeout": re.compile(r"[0-9][0-9.]*[smhd]?|--foreground|--preserve-status"),
    "xargs": re.compile(r"-[0rt]+|-[nPL][0-9]*|[0-9]+|--null|--no-run-if-empty"),
}
"""Programs that run the words behind them as they stand: options, and their values, that change nothing of that and can be no program's
name."""
_WITH_SUBCOMMANDS = SUBCOMMAND_PROGRAMS | KINDS.running_subcommands_of.keys()
_RUNNING_SUBCOMMANDS = KINDS.running_words | KINDS.running_subcommands
_RUNNING = WRAPPERS | SHELLS | CODE_PROGRAMS
DATA_PROGRAMS = (PLAIN_PROGRAMS | KINDS.operand_programs | TABLED_PROGRAMS) - _RUNNING


def only_looks_up(words: tuple[str, ...]) -> bool:
    """Return whether it is `command -v NAME`, which runs nothing."""
    return words[0] == "command" and words[1:2] in (("-v",), ("-V",))


def find_plainly_run(words: tuple[str, ...]) -> int:
    """Return the place of the program that a program such as `sudo` runs, 0 if it is not certain, or not known what its operands are."""
    flags = _PLAIN_FLAGS.get(base_name(words[0]))
    if flags is None:
        return 0
    at = next((at for at in range(1, len(words)) if not flags.fullmatch(words[at])), 0)
    return at if at and _says_what_its_words_are(words[at]) else 0


def find_inner_commands(words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of words that may begin a command that the first word's program runs.

    Behind a program that treats its operands as data there are none, and of one with subcommands only those behind a word such as `run`.
    Of any other program each word counts, unless the first operand is itself a program of one of these two kinds.
    """
    if only_looks_up(words):
        return ()
    places: list[int] = []
    program = 0
    while True:
        start = _first_operand(words, program)
        inner = program + find_plainly_run(words[program:])
        inner = inner if inner > program else start
        while inner < len(words) and _is_no_command(words[inner]):
            inner += 1
        if inner == len(words) or not _says_what_its_words_are(words[inner]) or _names_target(words[program]):
            return (*places, *range(start, len(words)))
        places += range(start, inner + 1)  # an option with its value may hold a command, too
        program = inner


def find_line_commands(words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the same places for a text that may be a command line, or prose: what its program does with its words must be known."""
    first = next((at for at, word in enumerate(words) if not _begins_command(word)), len(words) - 1)
    name = base_name(words[first])
    is_known = name != words[first] or name in _RUNNING or is_listed(name, SUBCOMMAND_PROGRAMS | INTERPRETERS)
    inner = find_inner_commands(words[first:]) if is_known else ()
    return (*range(first + 1), *(first + at for at in inner))


def _begins_command(word: str) -> bool:
    return word in KEYWORDS or (word.partition("=")[0].isidentifier() and "=" in word)


def _first_operand(words: tuple[str, ...], program: int) -> int:
    """Return the first place behind the program where a command may stand, the count of words if there is none."""
    name = base_name(words[program])
    if name == "git":
        is_known = any(word.startswith("-") or f"git {word}" in HARMLESS for word in words[program + 1 : program + 2])
        return len(words) if is_known else min(program + 2, len(words))  # `git x` may be a program or an alias
    if is_listed(name, _WITH_SUBCOMMANDS):
        start = _behind_subcommand(
            words, program + 1, _RUNNING_SUBCOMMANDS | KINDS.running_subcommands_of.get(name, frozenset())
        )
        names_script = name in KINDS.runs_scripts and words[start - 1] == "run"
        return min(start + names_script, len(words))
    return len(words) if is_listed(name, DATA_PROGRAMS) else program + 1


def _behind_subcommand(words: tuple[str, ...], first: int, running: frozenset[str]) -> int:
    """Return the place behind a subcommand that runs a command; which options before it take a value is not known."""
    for at in range(first, len(words)):
        if words[at] in running:
            return at + 1
        is_option = words[at].startswith("-") or (at > first and words[at - 1].startswith("-"))
        if not is_option and words[at] not in KINDS.grouping_subcommands:
            break
    return len(words)


def _is_no_command(word: str) -> bool:
    """Return whether the word is an option with its value, or `--`: behind an option of its own a value may stand."""
    return word == "--" or ("=" in word and " " not in word)


def _says_what_its_words_are(word: str) -> bool:
    return is_listed(base_name(word), _WITH_SUBCOMMANDS | DATA_PROGRAMS)


def _names_target(word: str) -> bool:
    """Return whether the first operand may be a container or a host, whatever it is called."""
    return is_listed(base_name(word), KINDS.runs_elsewhere)
