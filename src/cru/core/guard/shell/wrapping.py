"""What may stand around a program and changes nothing of what it does: **the** tables of harmless variables, of programs that run another
one under a limit, and of commands that only look, print or decide."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cru.core.guard.shell.programs import VARIABLES, names
from cru.core.guard.shell.syntax import PartKind, Word

_VALUES = {name: re.compile(values) for values, variables in VARIABLES.harmless.items() for name in variables}
"""Patterns of the values with which a variable decides only about language, colours and numbers."""
_PLAIN = re.compile(r"[\w.,:@+=/-]+", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+", re.ASCII)
_DURATION = re.compile(r"[0-9]+(\.[0-9]+)?[smhd]?")
_TIMEOUT_OPTION = re.compile(r"--foreground|--preserve-status|-v|--verbose|--(kill-after|signal)=[\w.]+|-[ks][\w.]+")
_GIT_OPTIONS = names("--no-pager -P --no-optional-locks --literal-pathspecs")
_SILENT = names(": echo exit false pwd true")
_STOPPING = re.compile(
    r"set(?: -[eEu]+| -[eEu]*o (?:pipefail|errexit|nounset))+"
)  # -x shows what PS4 says, which is run
_LOOKING = re.compile(r"(?:which|type|command -v)(?: [\w.+-]+)+", re.ASCII)
_WAITING = re.compile(r"sleep [0-9.]+[smhd]?", re.ASCII)
_FORMAT = re.compile(r"(?!-)(?:[^%]|%%|%s)*")  # `%n` sets a variable
DECIDING = names("[ command exit false test type which")
"""Of these commands those that something may depend on."""
_EVALUATING = ("-v", "-R")  # of `test`: what stands behind may be run
_UNARY = names("-d -e -f -h -L -n -r -s -w -x -z")
_COUNTS = names("? #")
_SHOWN = names("? # HOME PWD USER")
"""Variables that may be printed: others may be secrets."""


def is_harmless_assignment(word: Word) -> bool:
    """Whether `NAME=value` decides nothing of what runs."""
    name, _, value = word.source.partition("=")
    return name in _VALUES and _VALUES[name].fullmatch(value) is not None


def bare_words(words: Sequence[Word]) -> Sequence[Word]:
    """Without `timeout 60` and the like before the program, and git without options that say how it prints."""
    while (inner := _without_wrapper(words)) is not None:
        words = inner
    if words[0].source == "git":
        at = 1
        while at < len(words) and words[at].source in _GIT_OPTIONS:
            at += 1
        words = [words[0], *words[at:]]
    return words


def _without_wrapper(words: Sequence[Word]) -> Sequence[Word] | None:
    name = words[0].source
    at = 1
    if name == "timeout":
        while at < len(words) and (taken := _timeout_option(words[at : at + 2])):
            at += taken
        if at >= len(words) or not _DURATION.fullmatch(words[at].source):
            return None
        at += 1
    elif name == "nice":
        if len(words) > 2 and words[1].source == "-n" and _NUMBER.fullmatch(words[2].source):
            at = 3
        elif len(words) > 1 and words[1].source.startswith("-n") and _NUMBER.fullmatch(words[1].source[2:]):
            at = 2
    elif name == "env":
        while at < len(words) and is_harmless_assignment(words[at]):
            at += 1
    else:
        return None
    is_program = at < len(words) and _is_plain(words[at]) and not words[at].source.startswith("-")
    return words[at:] if is_program and "=" not in words[at].source else None


def _timeout_option(words: Sequence[Word]) -> int:
    """How many words an option of `timeout` takes here, 0 if none stands here."""
    if _TIMEOUT_OPTION.fullmatch(words[0].source):
        return 1
    return 2 if words[0].source in ("-k", "-s") and len(words) == 2 and _PLAIN.fullmatch(words[1].source) else 0


def _is_plain(word: Word) -> bool:
    return _PLAIN.fullmatch(word.source) is not None


def is_silent_builtin(words: Sequence[Word]) -> bool:
    """Whether it only prints, waits, looks whether something is there, or ends a list."""
    name = words[0].source
    if name == "[":
        return words[-1].source == "]" and _is_plain_test(words[1:-1])
    if name == "test":
        return _is_plain_test(words[1:])
    if name == "printf":
        return len(words) > 1 and is_plain_format(words[1]) and _prints_plain(words[2:])
    if name in _SILENT:
        return _prints_plain(words[1:])
    line = " ".join(word.source for word in words)
    return any(pattern.fullmatch(line) for pattern in (_STOPPING, _LOOKING, _WAITING))


def is_plain_format(word: Word) -> bool:
    """Return whether it is a literal format of `printf` that sets no variable and computes nothing."""
    is_text = all(part.kind is PartKind.TEXT for part in word.parts) and not word.has_unquoted("*?[{~")
    return is_text and _FORMAT.fullmatch(word.text) is not None


def _prints_plain(words: Sequence[Word]) -> bool:
    """Whether they are texts, and variables that may be shown."""
    if any(word.has_unquoted("*?[{~") for word in words):  # names of files, `{1..999999999}`
        return False
    parts = [part for word in words for part in word.parts]
    return all(part.kind is PartKind.TEXT or (part.kind is PartKind.VARIABLE and part.name in _SHOWN) for part in parts)


def _is_plain_test(arguments: Sequence[Word]) -> bool:
    """Whether what is tested is no name that the shell may run (`-v 'a[$(rm x)]'`)."""
    if len(arguments) == 2 and arguments[0].source in _UNARY:
        return not arguments[1].has_unquoted("*?[{") and all(
            part.kind is PartKind.TEXT or (part.kind is PartKind.VARIABLE and part.quoted)
            for part in arguments[1].parts
        )
    if any("[" in word.text or word.text.startswith(_EVALUATING) or word.has_unquoted("*?{~") for word in arguments):
        return False
    parts = [part for word in arguments for part in word.parts]
    return all(
        part.kind is PartKind.TEXT or (part.kind is PartKind.VARIABLE and part.name in _COUNTS) for part in parts
    )
