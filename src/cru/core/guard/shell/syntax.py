"""The tree that shell source is read into. Every node knows its place: `text[node.start:node.end]` is its source.

A node is put into its parent before it is filled, so the tree of a source that cannot be read to its end holds all that stands before
that place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct, field

EXPANSION = "\x01"
"""Stands in a word for the `$` of a variable, where that must not be taken for a dollar in quotes."""
_NUMBERS = frozenset("?#$")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=", re.ASCII)


class PartKind(Enum):
    """What a part of a word is.

    TEXT: what stands there, without its quotes
    VARIABLE: `$name` or `${name}`
    COMPUTED: any other `${…}`
    ARITHMETIC: `$((…))`
    DOLLAR_QUOTED: `$'…'` or `$"…"`
    COMMAND: `$(…)`
    BACKQUOTED: a command in backquotes
    PROCESS: `<(…)` or `>(…)`
    ARRAY: the parentheses behind an assignment's `=`
    """

    TEXT = "text"
    VARIABLE = "variable"
    COMPUTED = "computed"
    ARITHMETIC = "arithmetic"
    DOLLAR_QUOTED = "dollar-quoted"
    COMMAND = "command"
    BACKQUOTED = "backquoted"
    PROCESS = "process"
    ARRAY = "array"


class CompoundKind(Enum):
    """What a command is that is more than words; the value is how it begins."""

    SUBSHELL = "("
    GROUP = "{"
    ARITHMETIC = "(("
    CONDITION = "[["
    IF = "if"
    WHILE = "while"
    UNTIL = "until"
    FOR = "for"
    SELECT = "select"
    CASE = "case"
    FUNCTION = "function"
    COPROCESS = "coproc"


class ShellNode(Struct):
    """start, end: characters of the source; `end` is that of the text for what was not read to its end"""

    start: int
    end: int

    def children(self) -> Sequence[ShellNode]:
        """The nodes in it, in the order of the source."""
        return ()

    def walk(self) -> Iterator[ShellNode]:
        """The node and all that is in it, outer ones first."""
        pending: list[ShellNode] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node.children())


class WordPart(ShellNode):
    """A part of a word.

    quoted: it stands in quotes or behind a backslash
    value: the text without quotes; of everything else the source
    words: the words in it, of a COMPUTED, ARITHMETIC or `$"…"` one word
    body: the commands in it; None: there are none, or (BACKQUOTED) they cannot be read in place
    """

    kind: PartKind = PartKind.TEXT
    quoted: bool = False
    value: str = ""
    words: list[Word] = field(default_factory=list)
    body: Script | None = None

    def children(self) -> Sequence[ShellNode]:
        return self.words if self.body is None else (self.body,)

    @property
    def name(self) -> str:
        """A variable's name; of everything else the value."""
        return self.value.strip("{}").removeprefix("$").strip("{}") if self.kind is PartKind.VARIABLE else self.value

    @property
    def is_number(self) -> bool:
        """Whether it is a variable that holds digits only."""
        return self.kind is PartKind.VARIABLE and self.name in _NUMBERS

    @property
    def marked_value(self) -> str:
        """The value, of a variable with EXPANSION for its `$`."""
        return EXPANSION + self.value[1:] if self.kind is PartKind.VARIABLE else self.value


class Word(ShellNode):
    """source: as it is written, "" while it is not read to its end"""

    parts: list[WordPart] = field(default_factory=list)
    source: str = ""

    def children(self) -> Sequence[ShellNode]:
        return self.parts

    @property
    def text(self) -> str:
        """Without quotes; what a shell would put in stands as it is written."""
        return "".join(part.value for part in self.parts)

    @property
    def assigned_name(self) -> str:
        """The variable that it would set, "" for another word."""
        match = _ASSIGNMENT.match(self.source)
        return match[1] if match else ""

    def has_unquoted(self, chars: str) -> bool:
        """Whether one of these characters stands in it and may mean more than itself."""
        return any(
            not (part.quoted or part.is_number)
            and (part.kind is PartKind.TEXT or part.kind is PartKind.VARIABLE)
            and any(char in part.name for char in chars)
            for part in self.parts
        )


class Redirection(ShellNode):
    """operator: such as `>>`
    stream: the number or `{name}` before it, "" for none
    target: the word behind it, None if it was not read
    document: what a shell puts in of a here-document
    text: of a here-document, as it is written
    """

    operator: str
    stream: str = ""
    target: list[Word] = field(default_factory=list)
    document: list[WordPart] = field(default_factory=list)
    text: str = ""

    def children(self) -> Sequence[ShellNode]:
        return (*self.target, *self.document)


class SimpleCommand(ShellNode):
    """A program or builtin with its arguments."""

    assignments: list[Word] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)

    def children(self) -> Sequence[ShellNode]:
        return sorted((*self.assignments, *self.words, *self.redirections), key=_start)


class Compound(ShellNode):
    """words: names, lists, patterns, conditions
    bodies: the commands in it
    """

    kind: CompoundKind
    words: list[Word] = field(default_factory=list)
    bodies: list[Script] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)

    def children(self) -> Sequence[ShellNode]:
        return sorted((*self.words, *self.bodies, *self.redirections), key=_start)


class Pipeline(ShellNode):
    """prefix: `!` and `time`
    operator: what stands behind it: `;`, `&`, `&&`, `||`, a line end, "" for nothing
    """

    prefix: list[str] = field(default_factory=list)
    commands: list[SimpleCommand | Compound] = field(default_factory=list)
    operator: str = ""

    @property
    def is_only_prefix(self) -> bool:
        """Whether it is a `!` or `time` without a command."""
        return bool(self.prefix) and len(self.commands) == 1 and self.commands[0].start == self.commands[0].end

    def children(self) -> Sequence[ShellNode]:
        return self.commands


class Script(ShellNode):
    """A list of commands."""

    pipelines: list[Pipeline] = field(default_factory=list)

    @property
    def ends_with_prefix(self) -> bool:
        """Whether nothing stands behind a last `!` or `time`."""
        return bool(self.pipelines) and self.pipelines[-1].is_only_prefix and not self.pipelines[-1].operator

    def children(self) -> Sequence[ShellNode]:
        return self.pipelines


class Unreadable(Exception):
    """Source that cannot be read for certain.

    at: where that begins
    reason: what stands there, in words for a person
    """

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


class Misplaced(Unreadable):
    """A token that the grammar has no place for, or a command without its end."""


class ParsedShell(Struct):
    """text: the source
    script: all of it up to what cannot be read
    comments: (start, end) of each
    problem: why it is not read to its end, None if it is
    stop: the character that was not read any more then; what is only unfinished was read to the end of the text
    """

    text: str
    script: Script
    comments: list[tuple[int, int]] = field(default_factory=list)
    problem: Unreadable | None = None
    stop: int = 0


def _start(node: ShellNode) -> int:
    return node.start
