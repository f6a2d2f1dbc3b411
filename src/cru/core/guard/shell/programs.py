"""What cru knows of programs by their names: the facts of program_facts, and under which name they have a program."""

from __future__ import annotations

import re

from cru.core.guard.shell.program_facts import load_facts

_FACTS = load_facts()
GROUPS = _FACTS.groups
COMMANDS = _FACTS.commands
KINDS = _FACTS.kinds
VARIABLES = _FACTS.variables
PROJECT_FILES = _FACTS.project_files
OTHER_NAMES = {other: name for name, facts in COMMANDS.items() for other in facts.other_names.split()}
"""Programs with the options of another one."""

KEYWORDS = KINDS.keywords
WRAPPERS = KINDS.wrappers
SHELLS = KINDS.shells
INTERPRETERS = KINDS.interpreters
SUBCOMMAND_PROGRAMS = KINDS.subcommand_programs
PLAIN_PROGRAMS = KINDS.plain_programs
CODE_RUNNERS = SHELLS | KINDS.code_runners
CODE_VARIABLE_PREFIXES = tuple(sorted(VARIABLES.code_prefixes))

NAMING_OPTIONS = {"printf": ("-v",), "test": ("-v", "-R"), "[": ("-v", "-R")}
"""Builtins that take names of variables with these options only."""

TABLED_PROGRAMS = {
    name.partition(" ")[0] for name, facts in COMMANDS.items() if facts.harmless is not None or facts.does_more
} | OTHER_NAMES.keys()
"""Programs of which the files say which options run something."""
CODE_PROGRAMS = INTERPRETERS - (TABLED_PROGRAMS - frozenset(("awk", "gawk", "gmake", "make", "mawk", "nawk")))
"""Programs that run code from their arguments, and no file says from which."""
_PYTHONS = frozenset(("python", "pypy"))
_VERSION = re.compile(r"-?(?<![\d.])\d[\d.]*$")
_MODULE = re.compile(r"-[bBdEhiIOPqRsSuvVx?]*m(.*)", re.DOTALL)
_VALUED = ("-W", "-X")


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def base_name(word: str) -> str:
    """Return the program's name without its path."""
    return word.rpartition("/")[2]


def is_listed(name: str, programs: frozenset[str]) -> bool:
    """Return whether it is one of these programs, with or without a version behind it (`python3.11`)."""
    return name in programs or name.rstrip("0123456789.-") in programs


def runs_code(word: str) -> bool:
    """Return whether the word names a shell or a program that may run what its words hold."""
    name = base_name(word)
    return name in SHELLS or is_listed(name, CODE_PROGRAMS)


def known_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words with the name that the files have for the program: `pip` for `/usr/bin/pip3.11`, also for `python3 -m pip`."""
    words = _of_module(words)
    name = base_name(words[0])
    name = OTHER_NAMES.get(name, name)
    if not _has_options(name):
        bare = _VERSION.sub("", name)
        bare = OTHER_NAMES.get(bare, bare)
        name = bare if _has_options(bare) else name
    return (name, *words[1:])


def _has_options(name: str) -> bool:
    facts = COMMANDS.get(name)
    return facts is not None and (facts.harmless is not None or facts.does_more)


def _of_module(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what stands behind the `-m` of `python -m NAME`."""
    if not is_listed(base_name(words[0]), _PYTHONS):
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if match := _MODULE.fullmatch(words[at]):
            named = (match[1], *words[at + 1 :]) if match[1] else words[at + 1 :]
            return (named[0].partition(".")[0], *named[1:]) if named else words
        at += 2 if words[at] in _VALUED else 1
    return words
