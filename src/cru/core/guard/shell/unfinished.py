"""What of a text that is typed into a shell waits for more: with what is typed next it may make another command than either shows."""

from __future__ import annotations

import re

from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.syntax import Misplaced, ParsedShell, PartKind, ShellNode, Word, WordPart

_READ_LATER = (PartKind.COMMAND, PartKind.BACKQUOTED, PartKind.PROCESS, PartKind.ARITHMETIC, PartKind.COMPUTED)
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[[^\]]*\Z")
"""What bash reads up to its `]`, over as many lines as that takes."""

_SUBSCRIPT_BEGIN = re.compile(r"\w\[")

_OPENING = frozenset("\"'`$\\")
"""What a word begins with that may go on in the next line."""

_ERRORS_IN_A_LINE = 100
"""Behind so many the line counts as unfinished."""


def unfinished_part(text: str) -> str:
    """The end of these lines that a shell has read and not run: an open quote, a here-document, a compound command, a pipe, a line that
    goes on. "" if it has run all.

    What shells read in different ways counts as unfinished. Behind an error they go on with the next line.
    """
    at = 0
    while at < len(text):
        parsed = parse(text[at:])
        if parsed.problem is None:
            if (opened := _open_subscript(parsed)) is not None:
                return text[at + _begin(parsed, opened) :]
            return text[at + _begin(parsed, len(parsed.text)) :] if _goes_on(parsed) else ""
        if not _is_error(parsed):
            return text[at + _begin(parsed, parsed.problem.at) :]
        at += _line_end(parsed.text, parsed.problem.at) + 1
    return ""


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _goes_on(parsed: ParsedShell) -> bool:
    """Whether the last line ends with a backslash that joins the next one to it."""
    line = parsed.text.removesuffix("\n")
    is_comment = any(end == len(line) for _, end in parsed.comments)
    return _ends_with_backslash(line) and not is_comment


def _open_subscript(parsed: ParsedShell) -> int | None:
    """Where a word may begin that goes on up to a `]`."""
    for node in parsed.script.walk():
        if isinstance(node, Word) and _SUBSCRIPT.match(_joined(node)):
            return node.start
        if isinstance(node, WordPart) and node.kind is PartKind.ARRAY and any(map(_has_open_element, node.words)):
            return node.start
    return None


def _has_open_element(word: Word) -> bool:
    """Whether bash reads on for the `]` of an element of an array."""
    text = _joined(word)
    return text.startswith("[") and text.count("[") > text.count("]")


def _joined(word: Word) -> str:
    return word.source.replace("\\\n", "")


def _ends_with_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _is_error(parsed: ParsedShell) -> bool:
    """Whether bash rejects it at the end of this line, whatever follows. It may have to read the rest of the line to see the error."""
    for _ in range(_ERRORS_IN_A_LINE):
        if not _is_rejected(parsed):
            return False
        parsed = parse(_rest_of_line(parsed))
        if parsed.problem is None:
            return _open_subscript(parsed) is None and not _goes_on(parsed)
    return False


def _is_rejected(parsed: ParsedShell) -> bool:
    problem = parsed.problem
    if problem is None or parsed.stop >= len(parsed.text):
        return False
    text, at = parsed.text, problem.at
    if text[at] == "{" or (text[at] == "(" and text[at - 1 : at] == "="):
        return False  # the body of a loop, for bash; an array that a word goes on behind
    if not isinstance(problem, Misplaced) and text[at] not in "()":
        return False
    begin = text.rfind("\n", 0, at) + 1
    if text[:begin].endswith("\\\n") or "<<" in text[: _line_end(text, at)]:
        return False  # what is joined, and whose text follows, is not looked at
    if _has_open_subscript(text[begin : _line_end(text, at)]) or _may_name_function(text[begin:at]):
        return False
    return not any(_is_read_later(node, at) for node in parsed.script.walk())


def _rest_of_line(parsed: ParsedShell) -> str:
    """Behind what is wrong; with it, if it may begin something by itself."""
    text, at = parsed.text, parsed.problem.at if parsed.problem else len(parsed.text)
    is_kept = text[at] in _OPENING or (at > 0 and text[at] not in "()")
    return text[at if is_kept else at + 1 : _line_end(text, at) + 1]


def _has_open_subscript(line: str) -> bool:
    return line.rfind("[") > line.rfind("]")


def _may_name_function(before: str) -> bool:
    """Whether what stands before parentheses is a word with a subscript, which may have blanks in it: bash takes it for a name."""
    word = before.rstrip(" \t")
    closing = word.rfind("]")
    return " " not in word[closing:] and "\t" not in word[closing:] and bool(_SUBSCRIPT_BEGIN.search(word, 0, closing))


def _is_read_later(node: ShellNode, at: int) -> bool:
    """Whether this place is in what is put in place of itself: some shells read it only when it runs."""
    return isinstance(node, WordPart) and node.kind in _READ_LATER and node.start <= at <= node.end


def _begin(parsed: ParsedShell, place: int) -> int:
    """Where the line of commands begins that has this place in it."""
    begin, behind, operator = 0, 0, ""
    for pipeline in parsed.script.pipelines:
        if pipeline.start > place:
            return begin
        begin = pipeline.start if operator == "\n" else begin
        behind, operator = _line_end(parsed.text, pipeline.end) + 1, pipeline.operator
    return behind if operator == "\n" and place == len(parsed.text) else begin
