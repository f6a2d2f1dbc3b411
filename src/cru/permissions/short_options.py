"""Short forms of long options, from the programs' documents: a deny or ask rule on `git push --force *` holds for `git push -f`, too. Only
options without a value, and only what such rules are written for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cru.shell.programs import base_name

SHORT: Mapping[str, Mapping[str, str]] = {
    "git push": {"--force": "f", "--delete": "d", "--set-upstream": "u"},
    "git commit": {"--all": "a", "--no-verify": "n"},
    "git add": {"--all": "A", "--force": "f"},
    "git branch": {"--delete": "dD", "--force": "fDMC", "--move": "mM"},
    "git checkout": {"--force": "f"},
    "git switch": {"--force": "f", "--discard-changes": "f"},
    "git clean": {"--force": "f"},
    "git fetch": {"--force": "f", "--prune": "p"},
    "git tag": {"--delete": "d", "--force": "f"},
    "git rm": {"--force": "f"},
    "git mv": {"--force": "f"},
    "rm": {"--recursive": "rR", "--force": "f"},
    "cp": {"--recursive": "rR", "--force": "f"},
    "mv": {"--force": "f"},
    "chmod": {"--recursive": "R"},
    "chown": {"--recursive": "R"},
    "ln": {"--force": "f", "--symbolic": "s"},
    "curl": {"--insecure": "k", "--location": "L"},
    "docker rm": {"--force": "f", "--volumes": "v"},
    "docker rmi": {"--force": "f"},
    "npm install": {"--global": "g"},
}
"""Program, or program and subcommand: long option -> the letters that mean it."""
TAKING = {
    "git push": "o", "git commit": "mFCcut", "git fetch": "jo", "git tag": "mFu", "git branch": "u", "git checkout": "bB",
    "git switch": "cC", "git clean": "e", "cp": "St", "mv": "St", "ln": "St",
    "curl": "ACDEFHKPQTUXYbcdehmortuwxyz",
}  # fmt: skip
"""Letters that take a value: what stands behind one in its word is no option."""
_PROGRAMS = frozenset(key.split(" ")[0] for key in SHORT)
_LETTERS = re.compile(r"-[A-Za-z0-9]+")


_SHORTENED = frozenset(option for options in SHORT.values() for option in options)


def has_short_form(option: str) -> bool:
    """Whether a letter may mean this option, or one that begins so."""
    return any(known.startswith(option) for known in _SHORTENED)


def with_long_options(words: Sequence[str], named: Iterable[str]) -> tuple[str, ...]:
    """The words with the long options that a rule names in the place of letters that mean them; `-uf` is `--force` then."""
    options = tuple(dict.fromkeys(named))
    spelled_out: list[str] = []
    program = key = ""
    for word in words:
        if word == "--":
            key = ""
        elif not key and f"{program} {word}" in SHORT:
            key = f"{program} {word}"
        elif (name := base_name(word)) in _PROGRAMS:
            program, key = name, name if name in SHORT else ""
        elif key and _LETTERS.fullmatch(word):
            letters = _options_of(word, TAKING.get(key, ""))
            spelled_out += [option for option in options if not letters.isdisjoint(SHORT[key].get(option, ""))] or [
                word
            ]
            continue
        spelled_out.append(word)
    return tuple(spelled_out)


def _options_of(word: str, taking: str) -> frozenset[str]:
    """The letters of a word that are options."""
    end = next((at for at, letter in enumerate(word[1:], 2) if letter in taking), len(word))
    return frozenset(word[1:end])
