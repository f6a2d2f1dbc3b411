"""A command without what changes nothing of the programs that it runs: what allow rules look at if they do not cover the command as it is.
Deny and ask rules look at the command itself (docs/decisions/0101)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from shlex import quote

from cru.shell.analysis import writes_nothing
from cru.shell.parser import parse
from cru.shell.syntax import CompoundKind, PartKind, Redirection, Script, SimpleCommand, Word, WordPart
from cru.shell.wrapping import bare_words, is_harmless_assignment, is_silent_builtin

LONGEST = 20_000
"""Characters of a command that is looked at."""
_TRANSPARENT = (CompoundKind.SUBSHELL, CompoundKind.GROUP, CompoundKind.IF)
_UNCLEAR_IN_COMMENTS = "'\"`\\$"  # another shell may read a quote there


class Folder(Enum):
    """What `cd` leads to: the project's root, an existing folder of the project with nothing of its own that decides what programs do, or
    anything else."""

    ROOT = "root"
    INSIDE = "inside"
    OTHER = "other"


FolderOf = Callable[[str], Folder]
"""Of a path as it is written."""


class _Unclear(Exception):
    """Something that may change what the rest does."""


def simplify(text: str, folder_of: FolderOf) -> str:
    """The simple commands of a shell command, one behind the other, each without harmless variables, programs that only time or limit
    another one, and the like; "" if that cannot be said, or nothing can be left out."""
    if len(text) > LONGEST or any((char < " " and char not in "\t\n") or char == "\x7f" for char in text):
        return ""
    parsed = parse(text)
    comments = (text[start:end] for start, end in parsed.comments)
    if parsed.problem is not None or any(char in comment for comment in comments for char in _UNCLEAR_IN_COMMENTS):
        return ""
    simplifier = _Simplifier(text, folder_of)
    try:
        lines = [*simplifier.lines(parsed.script, is_alone=True)]
    except _Unclear:
        return ""
    simplified = "\n".join(lines)
    return simplified if simplified != text.strip() else ""


class _Simplifier:
    def __init__(self, text: str, folder_of: FolderOf) -> None:
        self._text = text
        self._folder_of = folder_of
        self._has_changed_folder = False
        self._has_left_root = False

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
        if command.assignments and not (command.words and all(map(is_harmless_assignment, command.assignments))):
            raise _Unclear
        if not command.words:
            return
        may_go = is_alone and all(map(writes_nothing, command.redirections))
        if may_go and (is_silent_builtin(command.words) or self._stays_inside(command.words)):
            return
        words = bare_words(command.words)
        if self._has_left_root and "/" in words[0].text and not words[0].text.startswith("/"):
            raise _Unclear  # another program than the rule means
        pieces = [*map(self._source, words), *(self._text[each.start : each.end] for each in command.redirections)]
        yield " ".join(pieces)

    def _stays_inside(self, words: Sequence[Word]) -> bool:
        """Whether it is a `cd` into the project. Raises _Unclear."""
        if words[0].source in ("pushd", "popd"):
            self._has_changed_folder = True
        if words[0].source != "cd" or len(words) != 2 or any(part.kind is not PartKind.TEXT for part in words[1].parts):
            return False
        path = words[1].text
        if not path or path.startswith("-") or words[1].has_unquoted("~*?[{"):
            return False
        if self._has_changed_folder and not path.startswith("/"):
            return False
        folder = self._folder_of(path)
        self._has_changed_folder = True
        self._has_left_root |= folder is Folder.INSIDE
        return folder is not Folder.OTHER

    def _source(self, word: Word) -> str:
        """As it is written, with the text itself in place of a `$(cat <<'EOF' …)`."""
        pieces: list[str] = []
        at = word.start
        for part in word.parts:
            text = self._text_of(part)
            if text is not None:
                pieces += [self._text[at : part.start], f'"{quote(text)}"']
                at = part.end
        return "".join((*pieces, self._text[at : word.end]))

    def _text_of(self, part: WordPart) -> str | None:
        """What `cat` prints of a here-document, in double quotes; None: it is anything else."""
        if part.kind is not PartKind.COMMAND or not part.quoted or part.body is None or len(part.body.pipelines) != 1:
            return None
        [pipeline] = part.body.pipelines
        command = pipeline.commands[0]
        if pipeline.prefix or len(pipeline.commands) != 1 or not isinstance(command, SimpleCommand):
            return None
        if [word.source for word in command.words] != ["cat"] or command.assignments or len(command.redirections) != 1:
            return None
        return self._document(command.redirections[0])

    def _document(self, redirection: Redirection) -> str | None:
        if redirection.operator not in ("<<", "<<-") or redirection.stream:
            return None
        text = self._text[redirection.text_start : redirection.text_end]
        is_quoted = redirection.target[0].source != redirection.target[0].text
        if not is_quoted and any(char in text for char in "$`\\"):
            return None
        if sys.platform == "darwin" and not _is_read_alike(text):
            return None
        if redirection.operator == "<<-":
            text = "".join(line.lstrip("\t") for line in text.splitlines(keepends=True))
        return text.rstrip("\n")


def _is_read_alike(text: str) -> bool:
    """Whether bash 3.2 of macOS finds the same end: it counts parentheses and quotes in the text."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0 or char in "'\"`\\#":
            return False
    return depth == 0
