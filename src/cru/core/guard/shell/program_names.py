"""Under which name the tables of options know the program of a command."""

from __future__ import annotations

import re

from cru.core.guard.shell.harmless import TABLES
from cru.core.guard.shell.option_effects import OPTION_EFFECTS, OTHER_NAMES
from cru.core.guard.shell.programs import INTERPRETERS, SHELLS, base_name, is_listed, names

TABLED_PROGRAMS = {key.partition(" ")[0] for key in TABLES} | OPTION_EFFECTS.keys() | OTHER_NAMES.keys()
"""Programs of which a table says which options run something."""
CODE_PROGRAMS = INTERPRETERS - (TABLED_PROGRAMS - names("awk gawk gmake make mawk nawk"))
"""Programs that run code from their arguments, and no table says from which."""
_PYTHONS = frozenset(("python", "pypy"))
_VERSION = re.compile(r"-?(?<![\d.])\d[\d.]*$")
_MODULE = re.compile(r"-[bBdEhiIOPqRsSuvVx?]*m(.*)", re.DOTALL)
_VALUED = ("-W", "-X")


def known_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with the program's name in the tables: `pip` for `/usr/bin/pip3.11`, also for `python3 -m pip`."""
    words = _of_module(words)
    name = base_name(words[0])
    name = OTHER_NAMES.get(name, name)
    if name not in TABLES and name not in OPTION_EFFECTS:
        bare = _VERSION.sub("", name)
        bare = OTHER_NAMES.get(bare, bare)
        name = bare if bare in TABLES or bare in OPTION_EFFECTS else name
    return (name, *words[1:])


def _of_module(words: tuple[str, ...]) -> tuple[str, ...]:
    """Of `python -m NAME` what stands behind `-m`."""
    if not is_listed(base_name(words[0]), _PYTHONS):
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if match := _MODULE.fullmatch(words[at]):
            named = (match[1], *words[at + 1 :]) if match[1] else words[at + 1 :]
            return (named[0].partition(".")[0], *named[1:]) if named else words
        at += 2 if words[at] in _VALUED else 1
    return words


def runs_code(word: str) -> bool:
    """Return whether the word names a shell or a program that may run what its words hold."""
    name = base_name(word)
    return name in SHELLS or is_listed(name, CODE_PROGRAMS)
