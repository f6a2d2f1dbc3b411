"""The program that a deny or ask rule names, where a command spells it as one of its versions, or as a glob that finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from cru.core.base.files.glob import StarGlob
from cru.core.guard.shell.analysis import Words
from cru.core.guard.shell.programs import KEYWORDS, KINDS, SHELLS, WRAPPERS, base_name

_VERSIONS = ("", *map(str, range(10)), "2.7", *(f"3.{minor}" for minor in range(30)))
"""That a glob may stand for behind a program's name."""
GLOB = re.compile(r"[*?\[]")
"""A sign of one."""


def without_globs(words: Words, programs: Words) -> Words:
    """With programs of the rule in the place of command words that may become their files' names: `rm` for `/bin/r?`, `pip` for `pip?`."""
    named = list(words)
    for at, word in enumerate(words):
        named[at] = _fitting(base_name(word), programs) or word
        if base_name(named[at]) not in WRAPPERS and "=" not in word and not word.startswith("-"):
            break
    return tuple(named)


def _fitting(name: str, programs: Words) -> str:
    """The first of the programs that a glob may find, perhaps with a version behind it; "" for none."""
    if not GLOB.search(name) or not any(char.isalnum() for char in name):
        return ""
    return next((each for each in programs if any(fnmatchcase(each + version, name) for version in _VERSIONS)), "")


@lru_cache(maxsize=4096)
def programs_of(pattern: StarGlob) -> Words:
    """What a rule names: a program, or others that run one and that one (`sudo pip install *`)."""
    words = pattern[0].split(" ")
    programs = words[:1]
    for word in words[1:]:
        if base_name(programs[-1]) not in WRAPPERS or not word:
            break
        if "=" not in word and not word.startswith("-"):
            programs.append(word)
    return tuple(programs)


def without_versions(words: Words, text: str, programs: Words, *, is_command: bool = False) -> Iterator[Words]:
    """The words with a program of the rule in the place of its versions (`pip` for `/usr/bin/pip3.11`): of the first one, and of all.

    text: the words, joined; is_command: the first word is the program for certain
    """
    searched = words[:1] if is_command else words
    for program in programs:
        if not program or program not in text or not (version := _version(program)).search(text):
            continue
        commands = _command_places(searched)
        places = [
            at for at, word in enumerate(searched) if version.fullmatch(word) and ("/" not in word or at in commands)
        ]
        for replaced in (places[:1], places) if len(places) > 1 else (places,) if places else ():
            yield tuple(program if at in replaced else word for at, word in enumerate(words))


@lru_cache(maxsize=8)
def _command_places(words: Words) -> frozenset[int]:
    """Where a word may be a program: first, behind variables and what begins a command, and anywhere behind one that runs another."""
    places = []
    runs_others, may_begin = False, True
    for at, word in enumerate(words):
        if may_begin or runs_others:
            places.append(at)
        runs_others = runs_others or word in KINDS.running_options or (may_begin and _runs_others(word))
        may_begin = may_begin and ("=" in word or word in KEYWORDS)
    return frozenset(places)


def _runs_others(word: str) -> bool:
    return (name := base_name(word)) in WRAPPERS or name in SHELLS


@lru_cache(maxsize=1024)
def _version(program: str) -> re.Pattern[str]:
    """A word that is the program with a version behind its name, perhaps with its folder."""
    more = r"-?\d[\d.]*[dmt]?" + (r"|\.\d[\d.]*[dmt]?" if program[-1].isdigit() else "")
    return re.compile(rf"(?<!\S)(?:\S*/)?{re.escape(program)}(?:{more})(?:-dbg)?(?!\S)")
