"""Files that a command only writes: a hook may keep a log of its own, and that is no reason to ask again.

Such a file may be left out only where it is certain that every shell reads the words in the same way: a quote or a comment that is read
otherwise could make a script that is run look like one that is written. Where that is not certain the source stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.syntax import (
    Compound,
    CompoundKind,
    PartKind,
    Redirection,
    ShellNode,
    SimpleCommand,
    Word,
    WordPart,
)

Span: TypeAlias = tuple[int, int]

_CHANGES_READING = re.compile(r"\r|\balias\b|=~|\(\(|\btee[ \t]*\(|\bfunction[ \t]+tee\b")
"""Words that change how what follows is read, or what `tee` is."""
_STREAMS = re.compile(r"\bdev\b(?!/null)|\bproc\b|\bfd\b|\bstd(?:in|out|err)\b")
"""Other names of a file that is open for writing."""
_WRITING = (">", ">>", ">|", "&>", "&>>")
_TEE = re.compile(r"(?:(?:/usr)?/bin/)?tee")
_TEE_OPTION = re.compile(r"-[ai]+|--append")
_DIFFERS = (PartKind.COMPUTED, PartKind.ARITHMETIC, PartKind.DOLLAR_QUOTED, PartKind.PROCESS)
_PARENTHESES = (CompoundKind.SUBSHELL, CompoundKind.CASE, CompoundKind.FUNCTION)
"""In a substitution shells differ in where these end."""


def strip_written_files(command: str) -> str:
    """The source without comments and without the files that output goes to; as it is where that is not certain."""
    parsed = parse(command)
    nodes = list(parsed.script.walk())
    if parsed.problem is not None or _CHANGES_READING.search(command) or any(map(_is_uncertain, nodes)):
        return command
    if any(start and command[start - 1] not in " \t\n;" for start, _ in parsed.comments):
        return command
    comments = [(start, end, "") for start, end in parsed.comments]
    written = [(start, end, " ") for node in nodes for start, end in _written(node)]
    rest = command
    for start, end, instead in sorted(comments + written, reverse=True):
        rest = rest[:start] + instead + rest[end:]
    return command if _STREAMS.search(rest) else rest


def _is_uncertain(node: ShellNode) -> bool:
    if isinstance(node, Redirection):
        return node.operator.startswith("<<") or any(word.source.startswith("#") for word in node.target)
    if not isinstance(node, WordPart):
        return False
    if node.body is None:
        return node.kind is PartKind.BACKQUOTED or node.kind in _DIFFERS
    return node.kind is PartKind.PROCESS or any(
        isinstance(inner, Compound) and inner.kind in _PARENTHESES for inner in node.body.walk()
    )


def _written(node: ShellNode) -> Iterator[Span]:
    """Where the names of files stand that this node writes, with the stream's number."""
    if isinstance(node, Redirection) and node.operator in _WRITING and _is_plain_name(node.target[0]):
        yield node.start + node.operator.startswith("&"), node.end
    elif isinstance(node, SimpleCommand) and node.words and not node.assignments:
        program, *arguments = node.words
        if _TEE.fullmatch(program.source):
            yield from _written_by_tee(
                arguments, [each.start for each in node.redirections if each.start > program.start]
            )


def _written_by_tee(arguments: list[Word], redirections: list[int]) -> Iterator[Span]:
    """redirections: where they begin, behind `tee`; what stands behind one is not looked at"""
    while arguments and _TEE_OPTION.fullmatch(arguments[0].source):
        arguments.pop(0)
    for word in arguments:
        if (
            word.end > min(redirections, default=word.end)
            or not _is_plain_name(word)
            or word.source.startswith(("-", "#"))
        ):
            return
        yield word.start, word.end


def _is_plain_name(word: Word) -> bool:
    """Whether nothing in it is run or escaped."""
    return "\\" not in word.source and all(part.kind in (PartKind.TEXT, PartKind.VARIABLE) for part in word.parts)
