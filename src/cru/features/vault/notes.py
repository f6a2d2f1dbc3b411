"""What is in a note: plain records, positions in bytes from the start of the file and lines from 1."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

NOTE_SUFFIXES = (".md", ".markdown")


class LinkKind(StrEnum):
    """How a note names another one."""

    WIKILINK = "wikilink"
    EMBED = "embed"
    MARKDOWN = "markdown"


class BlockKind(StrEnum):
    """What a note is made of, at its top level."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    CODE = "code"
    CALLOUT = "callout"
    QUOTE = "quote"
    TABLE = "table"
    FOOTNOTE = "footnote"
    MATH = "math"
    HTML = "html"
    RULE = "rule"


class NoteTaskStatus(StrEnum):
    """By the character between the brackets; any other one is pending."""

    PENDING = "pending"
    DONE = "done"
    IN_PROGRESS = "in_progress"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"


TASK_MARKS = {
    "x": NoteTaskStatus.DONE,
    "X": NoteTaskStatus.DONE,
    "/": NoteTaskStatus.IN_PROGRESS,
    "-": NoteTaskStatus.CANCELLED,
    "!": NoteTaskStatus.BLOCKED,
}


class Link(Struct, frozen=True):
    """target: the note that is named, as it is written, "" for the note itself; heading, block: the place in it, without `#` and `^`;
    alias: what a reader sees instead; start, end: of the whole link."""

    kind: LinkKind
    target: str
    heading: str
    block: str
    alias: str
    start: int
    end: int
    line: int


class Heading(Struct, frozen=True):
    level: int
    text: str
    start: int
    line: int


class Tag(Struct, frozen=True):
    """name: without `#`, as it is written."""

    name: str
    line: int


class NoteBlock(Struct, frozen=True):
    """id: its `^id`, without `^`; name: of a callout its type, of code its language, of a footnote its label."""

    kind: BlockKind
    start: int
    end: int
    line: int
    id: str = ""
    name: str = ""


class Field(Struct, frozen=True):
    """An inline field: `[key:: value]`, `(key:: value)`, or a line `key:: value`."""

    key: str
    value: str
    line: int


class NoteTask(Struct, frozen=True):
    """text: without its fields."""

    status: NoteTaskStatus
    text: str
    line: int
    fields: tuple[Field, ...] = ()


class Note(Struct, frozen=True):
    """A note that was read.

    properties: its front matter, in types of JSON; title and tags among them
    tags: of the front matter and of the text, each once, sorted
    body: where the text behind the front matter begins
    problems: what could not be read, a sentence each; the rest of the note counts
    """

    title: str
    properties: dict[str, object]
    tags: tuple[str, ...]
    body: int
    links: tuple[Link, ...] = ()
    headings: tuple[Heading, ...] = ()
    inline_tags: tuple[Tag, ...] = ()
    blocks: tuple[NoteBlock, ...] = ()
    fields: tuple[Field, ...] = ()
    tasks: tuple[NoteTask, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names that its front matter gives it."""
        return read_aliases(self.properties)


def read_aliases(properties: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names in `aliases` or `alias` of a front matter: a list, or one text, which Obsidian takes apart at commas."""
    names: list[str] = []
    for key in ("aliases", "alias"):
        value = properties.get(key)
        names += (
            value.split(",")
            if isinstance(value, str)
            else [str(each) for each in value]
            if isinstance(value, list)
            else []
        )
    return tuple(dict.fromkeys(stripped for name in names if (stripped := name.strip())))
