"""What of a text that is typed into a shell waits for more: with what is typed next it may make another command than either shows."""

from __future__ import annotations

import re

from cru.shell.parser import parse
from cru.shell.syntax import Misplaced, ParsedShell, PartKind, ShellNode, Word, WordPart

_READ_LATER = (PartKind.COMMAND, PartKind.BACKQUOTED, PartKind.PROCESS, PartKind.ARITHMETIC, PartKind.COMPUTED)
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[[^\]]*\Z")
"""What bash reads up to its `]`, over as many lines as that takes."""

_OPENING = frozenset("\"'`$\\")
"""What a word begins with that may go on in the next line."""


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
    words = (node for node in parsed.script.walk() if isinstance(node, Word))
    return next((word.start for word in words if _SUBSCRIPT.match(word.source)), None)


def _ends_with_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _is_error(parsed: ParsedShell) -> bool:
    """Whether bash rejects it at the end of this line, whatever follows."""
    problem = parsed.problem
    if problem is None or parsed.stop >= len(parsed.text):
        return False
    text, at = parsed.text, problem.at
    if not isinstance(problem, Misplaced) and text[at : at + 1] not in ("(", ")"):
        return False
    end = _line_end(text, at)
    rest = text[at if text[at] in _OPENING else at + 1 : end + 1]
    if _SUBSCRIPT.search(text[text.rfind("\n", 0, at) + 1 : end]) or unfinished_part(rest):
        return False  # bash may have to read the next word to see the error
    return not any(_is_read_later(node, at) for node in parsed.script.walk())


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
