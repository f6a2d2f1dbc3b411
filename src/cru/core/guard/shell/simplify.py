"""A command without what changes nothing of the programs that it runs: what allow rules look at if they do not cover the command as it is,
and what deny and ask rules look at beside it (docs/decisions/command-rules.md)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence, Set
from shlex import quote
from typing import NamedTuple

from cru.core.guard.shell.analysis import writes_nothing
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.syntax import (
    Compound,
    CompoundKind,
    PartKind,
    Pipeline,
    Script,
    SimpleCommand,
    Word,
    WordPart,
)
from cru.core.guard.shell.wrapping import DECIDING, bare_words, is_harmless_assignment, is_silent_builtin

LONGEST = 20_000
"""Characters of a command that is looked at."""
_TRANSPARENT = (CompoundKind.SUBSHELL, CompoundKind.GROUP, CompoundKind.IF)
UNCLEAR_IN_COMMENTS = "'\"`\\$"  # another shell may read a quote there
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


def bare_command_words(text: str) -> Sequence[Word]:
    """The words of one simple command that changes nothing but what its program does, without what stands around that; () for more."""
    parsed = parse(text)
    pipelines = parsed.script.pipelines
    if parsed.problem is not None or parsed.comments or len(pipelines) != 1 or len(pipelines[0].commands) != 1:
        return ()
    command = pipelines[0].commands[0]
    if not isinstance(command, SimpleCommand) or not command.words or command.redirections:
        return ()
    if pipelines[0].operator or pipelines[0].prefix or not all(map(is_harmless_assignment, command.assignments)):
        return ()
    return bare_words(command.words)


def has_condition(script: Script) -> bool:
    """Whether what runs in it depends on what a command says that needs no rule."""
    return any(
        node.kind is CompoundKind.IF if isinstance(node, Compound) else isinstance(node, Pipeline) and _decides(node)
        for node in script.walk()
    )


def _decides(pipeline: Pipeline) -> bool:
    """Whether a command looks, says no, or ends the list; or says yes, and what stands behind it is for a no."""
    commands = [command for command in pipeline.commands if isinstance(command, SimpleCommand) and command.words]
    return any(
        words[0].source in DECIDING
        or (pipeline.operator == "||" and (words[0].source == "cd" or is_silent_builtin(words)))
        for words in (bare_words(command.words) for command in commands)
    )


class _Simplified(NamedTuple):
    """text: "": it cannot be said"""

    text: str = ""
    left_out: frozenset[int] = frozenset()


def _read(text: str, root: str) -> _Simplified:
    if len(text) > LONGEST or any((char < " " and char not in "\t\n") or char == "\x7f" for char in text):
        return _Simplified()
    parsed = parse(text)
    comments = (text[start:end] for start, end in parsed.comments)
    if parsed.problem is not None or any(char in comment for comment in comments for char in UNCLEAR_IN_COMMENTS):
        return _Simplified()
    simplifier = _Simplifier(text, root)
    try:
        lines = [*simplifier.lines(parsed.script, is_alone=True)]
    except _Unclear:
        return _Simplified()
    if not lines:
        return _Simplified("\n".join(simplifier.silent))
    return _Simplified("\n".join(lines), frozenset(simplifier.left_out))


class _Simplifier:
    def __init__(self, text: str, root: str) -> None:
        self._text = text
        self._root = root
        self.left_out: list[int] = []
        self.silent: list[str] = []
        """Commands that need no rule beside others; alone they do."""

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
        words = bare_words(self._without_root(bare_words(command.words)))
        redirections = (self._text[each.start : each.end] for each in command.redirections)
        text = " ".join((*map(self._source, words), *redirections))
        may_go = is_alone and all(map(writes_nothing, command.redirections))
        is_silent = may_go and is_silent_builtin(command.words)
        self.silent += [text] if is_silent else []
        if is_silent or (may_go and self._stays_in_root(command.words)):
            self.left_out.append(command.start)
        else:
            yield text

    def _stays_in_root(self, words: list[Word]) -> bool:
        """Whether it is a `cd` to the folder in which the command begins. What is named, not where it leads: that may change meanwhile."""
        return len(words) == 2 and words[0].source == "cd" and self._is_root(words[1])

    def _is_root(self, word: Word) -> bool:
        path = word.text
        is_text = all(part.kind is PartKind.TEXT for part in word.parts) and not word.has_unquoted("*?[{")
        is_plain = is_text and path.startswith("/") and ".." not in path.split("/")
        return is_plain and os.path.normpath(path) == self._root

    def _without_root(self, words: Sequence[Word]) -> Sequence[Word]:
        """Without the `-C` of git that names that folder."""
        is_named = len(words) > 3 and words[0].source == "git" and words[1].source == "-C" and self._is_root(words[2])
        return [words[0], *words[3:]] if is_named else words

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
        return text.rstrip("\n") if sys.platform != "darwin" or is_read_alike(text) else None


def is_read_alike(text: str) -> bool:
    """Return whether bash 3.2 of macOS finds the same end of a here-document in `$(…)`: it counts parentheses and quotes in the text."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0 or char in "'\"`\\#":
            return False
    return depth == 0
