"""Hooks of a user that run a file of whatever project they stand in, as far as their words tell: what `cru hooks check` says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cru.core.guard.rules.paths import PROTECTED_NAMES
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.programs import CODE_RUNNERS, PLAIN_PROGRAMS, SHELLS, base_name, is_listed
from cru.core.guard.shell.syntax import SimpleCommand
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.report.runnable import SCRIPT

_PROJECT = re.compile(r"\$\{?(?:\w+_PROJECT_(?:DIR|ROOT)|\w+_CWD|PWD)\}?/|\.\.?/")
"""A path of the project, or where a variable begins that holds one in some dialect."""
ELSEWHERE = ("/", "~", "$")


def find_project_file(entry: HookEntry, facts: SessionFacts) -> tuple[str, str]:
    """(what is odd, the next step) of a user's entry that names such a file; ("", "") if it names none. Words only: what a shell makes of
    them is not known."""
    if entry.of_project or (entry.kind == "command" and entry.cwd.startswith(ELSEWHERE)):
        return "", ""
    words = _exec_form(entry) if entry.args is not None else _of_source(entry.command)
    word = next(words, "") if entry.kind == "command" else ""
    if not word:
        return "", ""
    file = _PROJECT.sub("", word, count=1)
    text = f"runs {word} of whatever project you stand in; cru does not review it"
    if not PROTECTED_NAMES.isdisjoint(file.split("/")):
        return text, ""
    return f"{text}, and in mode auto the model may write it", f'protect it with `[permissions] ask = ["write:{file}"]`'


def _exec_form(entry: HookEntry) -> Iterator[str]:
    words = [entry.command, *(entry.args or ())]
    yield from _of_program([word for word in words if word])


def _of_source(source: str) -> Iterator[str]:
    """Files that the commands of a shell's source name."""
    is_away = False
    for words in _commands(source):
        if words[:1] == ["cd"] and not _PROJECT.match(words[-1]) and words[-1].startswith(ELSEWHERE):
            is_away = True
        yield from (word for word in _of_program(words) if not is_away or word.startswith("$"))


def _commands(source: str) -> Iterator[list[str]]:
    """The words of each command and the files that it reads, quotes removed; without the files that it writes."""
    for node in parse(source).script.walk():
        if isinstance(node, SimpleCommand):
            read = [word for each in node.redirections if each.operator == "<" for word in each.target]
            yield [word.text for word in (*node.words, *read) if word.source]


def _of_program(words: list[str]) -> Iterator[str]:
    """Of one command: what it runs by a path, what it gives an interpreter, and all that is a path to begin with."""
    if not words:
        return
    first, name = words[0], base_name(words[0])
    if _PROJECT.match(first) or ("/" in first and not first.startswith(ELSEWHERE)):
        yield first
    if name in PLAIN_PROGRAMS:
        return
    argument = next((word for word in words[1:] if not word.startswith("-")), "")
    options = words[1 : words.index(argument)] if argument else []
    if name in SHELLS and options and "c" in options[-1]:
        yield from _of_source(argument)
    elif is_listed(name, CODE_RUNNERS) and not argument.startswith(ELSEWHERE) and SCRIPT.fullmatch(argument):
        yield argument
    yield from (word for word in words[1:] if _PROJECT.match(word) and not any(char.isspace() for char in word))
