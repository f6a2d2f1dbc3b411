"""A command without what changes nothing of the programs that it runs: what allow rules look at if they do not cover the command as it is,
and what deny and ask rules look at beside it (docs/decisions/0101)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Set
from shlex import quote
from typing import NamedTuple

from cru.shell.analysis import writes_nothing
from cru.shell.parser import parse
from cru.shell.syntax import CompoundKind, PartKind, Script, SimpleCommand, Word, WordPart
from cru.shell.wrapping import bare_words, is_harmless_assignment, is_silent_builtin

LONGEST = 20_000
"""Characters of a command that is looked at."""
_TRANSPARENT = (CompoundKind.SUBSHELL, CompoundKind.GROUP, CompoundKind.IF)
_UNCLEAR_IN_COMMENTS = "'\"`\\$"  # another shell may read a quote there
_DOCUMENT = re.compile(
    r"\$\([ \t]*cat[ \t]+<<(-?)[ \t]*(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|([A-Za-z_]\w*))[ \t]*\n", re.ASCII
)


class _Unclear(Exception):
    """Something that may change what the rest does."""


def simplify(text: str, root: str) -> str:
    """The simple commands of a shell command, one behind the other, each without harmless variables, programs that only time or limit
    another one, and the like; "" if that cannot be said, or nothing can be left out. root: the folder in which it runs"""
    simplified = _read(text, root).text
    return simplified if simplified != text.strip() else ""


def left_out(text: str, root: str) -> Set[int]:
    """Where the commands begin that need no rule beside others."""
    return _read(text, root).left_out


class _Simplified(NamedTuple):
    """text: "": it cannot be said"""

    text: str = ""
    left_out: frozenset[int] = frozenset()


def _read(text: str, root: str) -> _Simplified:
    if len(text) > LONGEST or any((char < " " and char not in "\t\n") or char == "\x7f" for char in text):
        return _Simplified()
    parsed = parse(text)
    comments = (text[start:end] for start, end in parsed.comments)
    if parsed.problem is not None or any(char in comment for comment in comments for char in _UNCLEAR_IN_COMMENTS):
        return _Simplified()
    simplifier = _Simplifier(text, root)
    try:
        lines = [*simplifier.lines(parsed.script, is_alone=True)]
    except _Unclear:
        return _Simplified()
    return _Simplified("\n".join(lines), frozenset(simplifier.left_out) if lines else frozenset())


class _Simplifier:
    def __init__(self, text: str, root: str) -> None:
        self._text = text
        self._root = root
        self.left_out: list[int] = []

    def lines(self, script: Script, *, is_alone: bool) -> Iterator[str]:
        """is_alone: nothing reads what is printed there. Raises _Unclear."""
        for pipeline in script.pipelines:
            alone = is_alone and len(pipeline.commands) == 1
            for command in pipeline.commands:
                if isinstance(command, SimpleCommand):
                    yield from self._simple(command, is_alone=alone)
                elif command.kind in _TRANSPARENT and all(map(writes_nothing, command.redirections)):
                    for body in command.bodies:
                        yield from self.lines(body, is_alone=alone)
                else:
                    raise _Unclear

    def _simple(self, command: SimpleCommand, *, is_alone: bool) -> Iterator[str]:
        if not command.words:
            if command.assignments or command.redirections:  # `> file`
                raise _Unclear
            return
        if not all(map(is_harmless_assignment, command.assignments)):
            raise _Unclear
        may_go = is_alone and all(map(writes_nothing, command.redirections))
        if may_go and (is_silent_builtin(command.words) or self._stays_in_root(command.words)):
            self.left_out.append(command.start)
            return
        words = map(self._source, bare_words(command.words))
        yield " ".join((*words, *(self._text[each.start : each.end] for each in command.redirections)))

    def _stays_in_root(self, words: list[Word]) -> bool:
        """Whether it is a `cd` to the folder in which the command begins. What is named, not where it leads: that may change meanwhile."""
        if words[0].source != "cd" or len(words) != 2 or any(part.kind is not PartKind.TEXT for part in words[1].parts):
            return False
        path = words[1].text
        is_plain = path.startswith("/") and ".." not in path.split("/") and not words[1].has_unquoted("*?[{")
        return is_plain and os.path.normpath(path) == self._root

    def _source(self, word: Word) -> str:
        """As it is written, with the text itself in place of a `$(cat <<'EOF' …)`."""
        pieces: list[str] = []
        at = word.start
        for part in word.parts:
            text = self._printed_by(part)
            if text is not None:
                pieces += [self._text[at : part.start], f'"{quote(text)}"']
                at = part.end
        return "".join((*pieces, self._text[at : word.end]))

    def _printed_by(self, part: WordPart) -> str | None:
        """What `cat` prints of a here-document, in double quotes; None: it is anything else, or a shell may see another end."""
        source = self._text[part.start : part.end]
        head = _DOCUMENT.match(source)
        if part.kind is not PartKind.COMMAND or not part.quoted or head is None:
            return None
        strips, *delimiters = head.groups()
        delimiter = next(filter(None, delimiters))
        lines = source[head.end() : -1].split("\n")
        if strips:
            lines = [line.lstrip("\t") for line in lines]
        if delimiter not in lines:
            return None
        at = lines.index(delimiter)
        text = "\n".join(lines[:at])
        if "".join(lines[at + 1 :]).strip(" \t") or any(line.startswith(delimiter) for line in lines[:at]):
            return None  # bash ends it at `EOF)`, too
        if delimiters[2] is not None and any(char in text for char in "$`\\"):
            return None
        return text.rstrip("\n") if sys.platform != "darwin" or _is_read_alike(text) else None


def _is_read_alike(text: str) -> bool:
    """Whether bash 3.2 of macOS finds the same end: it counts parentheses and quotes in the text."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0 or char in "'\"`\\#":
            return False
    return depth == 0
