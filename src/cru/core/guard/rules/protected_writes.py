"""Whether a command may write into a protected file, as far as its words show it: no answer to a question about it is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from cru.core.guard.rules.paths import PROTECTED_NAMES, PathRoots, is_decisive, is_protected, locate
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.programs import CODE_RUNNERS, KINDS, WRAPPERS, base_name, names
from cru.core.guard.shell.syntax import PartKind, Redirection, SimpleCommand, Word

MOVING = names("cd pushd popd builtin command eval")
"""What may make another folder the one that relative paths begin at."""

FROM_INPUT = names("xargs parallel")
"""What takes further words from its standard input."""

MOST = 2_000
"""Words of a command that are looked up one by one: each may be a path."""

_OPTION_VALUE = re.compile(r"-\w(?=[^\w=-])|[\w.-]*=")
"""What may stand before a path in the same word: `of=`, `--target-directory=`, `-t` before what is no letter."""


def may_write_protected(text: str, places: PathRoots) -> bool:
    """Also where the target of a redirection, or a word of a program that writes, is computed or relative to another folder, and
    where the command cannot be read to its end."""
    parsed = parse(text)
    if parsed.problem is not None:
        return True
    nodes = list(parsed.script.walk())
    commands = [node for node in nodes if isinstance(node, SimpleCommand) and node.words]
    if sum(len(command.words) for command in commands) > MOST:
        return True
    moves = any(command.words[0].text in MOVING for command in commands)
    targets = [
        node.target[0] for node in nodes if isinstance(node, Redirection) and ">" in node.operator and node.target
    ]
    if any(_target_may_be_protected(target, moves, places) for target in targets):
        return True
    return any(_words_may_write(command.words, moves, places) for command in commands)


def _target_may_be_protected(target: Word, moves: bool, places: PathRoots) -> bool:
    if target.text.isdigit() or target.text in ("-", "/dev/null"):
        return False
    if not _is_plain(target) or target.has_unquoted("*?[{") or (moves and _is_relative(target.text)):
        return True
    return is_protected(locate(places, "write", target.text), places)


def _words_may_write(words: Sequence[Word], moves: bool, places: PathRoots) -> bool:
    called = [base_name(word.text) for word in words]
    if called[0] in KINDS.name_readers:
        return False
    writes = not KINDS.name_writers.isdisjoint(called)
    if writes and not FROM_INPUT.isdisjoint(called):
        return True
    is_script = called[0] in CODE_RUNNERS and len(words) > 1 and not words[1].text.startswith("-")
    arguments = words[2:] if is_script else words[1:]
    if any(_holds_command(word, called[0]) and may_write_protected(word.text, places) for word in arguments):
        return True
    if writes:
        return any(_operand_may_be_protected(word, moves, places) for word in arguments)
    return any(_names_decisive(word.text, places) for word in arguments if _is_plain(word))


def _holds_command(word: Word, program: str) -> bool:
    """Whether it may be source of its own: `sh -c "…"`, `sudo sh -c "…"`."""
    return " " in word.text and (program in CODE_RUNNERS or program in WRAPPERS)


def _operand_may_be_protected(word: Word, moves: bool, places: PathRoots) -> bool:
    """Of a program that writes what it is given."""
    if not _is_plain(word) or word.has_unquoted("{") or any(map(_may_become_protected, _open_names(word))):
        return True
    if moves and _is_relative(word.text) and not word.text.startswith("-"):
        return True
    name = base_name(word.text.rstrip("/"))
    by_name = (name, f"~/{name}") if name else ()  # it may be put here, or into the home folder, under its own name
    return any(is_protected(locate(places, "write", path), places) for path in (*_paths_in(word.text), *by_name))


def _open_names(word: Word) -> list[str]:
    """The names in a path that the shell completes; a bare `*` is what lies in a folder, as a folder's own name is."""
    if not word.has_unquoted("*?["):
        return []
    return [name for name in word.text.split("/") if name != "*" and any(char in name for char in "*?[")]


def _may_become_protected(name: str) -> bool:
    hidden = name[0] in ".["
    return any(
        fnmatchcase(protected, name.casefold()) for protected in PROTECTED_NAMES if hidden or protected[0] != "."
    ) or name.startswith(".")


def _names_decisive(text: str, places: PathRoots) -> bool:
    return any(is_decisive(locate(places, "write", path), places) for path in _paths_in(text))


def _paths_in(text: str) -> Iterator[str]:
    """The word, and what of it may be a path."""
    if "\0" in text:
        return
    yield text
    match = _OPTION_VALUE.match(text)
    if match and match.end() < len(text):
        yield text[match.end() :]


def _is_plain(word: Word) -> bool:
    return all(part.kind is PartKind.TEXT for part in word.parts) and "\0" not in word.text


def _is_relative(text: str) -> bool:
    return not text.startswith(("/", "~"))
