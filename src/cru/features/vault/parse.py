"""Reads a note. Blocks and links come from `pyromark` (CommonMark with wikilinks, tables, task lists, footnotes and mathematics); tags,
inline fields and block ids are looked for in what is neither code nor link (docs/decisions/vault.md)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from cru.features.vault.front_matter import read_front_matter
from cru.features.vault.keys import fold
from cru.features.vault.notes import (
    NOTE_SUFFIXES,
    TASK_MARKS,
    BlockKind,
    Field,
    Heading,
    Link,
    LinkKind,
    Note,
    NoteBlock,
    NoteTask,
    NoteTaskStatus,
    Tag,
)

_WORD = rb"0-9A-Za-z_\x80-\xff"
_TAG = re.compile(rb"#(?<![#/&\\%s]#)([%s/-]+)" % (_WORD, _WORD))  # begins with what is rare, so it is found fast
_TAG_NAME = re.compile(r"[\w/-]+")
_FIELD = re.compile(  # bounded: where nothing closes them, each beginning would look through the rest of its line
    rb"\[([^\[\]():\n]{1,80})::([^\]\n]{0,2000})\]|\(([^\[\]():\n]{1,80})::([^)\n]{0,2000})\)"
)
_FIELD_LINE = re.compile(rb"^[ \t]*(?:[-*+][ \t]+)?([%s][%s \t-]{0,79})::[ \t]+(\S[^\n]*)$" % (_WORD, _WORD), re.M)
_BLOCK_ID = re.compile(rb"(?:\A|\s)\^([0-9A-Za-z-]+)\Z")
_TASK = re.compile(rb"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([^\]\r\n])\][ \t]+([^\r\n]*)")
_CALLOUT = re.compile(rb"[ \t]{0,3}>[ \t]*\[!([^\]\r\n]+)\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_MASKED = ("Code", "InlineMath", "DisplayMath", "Html", "InlineHtml")
_BLOCKS = {
    "Paragraph": BlockKind.PARAGRAPH, "Heading": BlockKind.HEADING, "List": BlockKind.LIST, "CodeBlock": BlockKind.CODE,
    "BlockQuote": BlockKind.QUOTE, "Table": BlockKind.TABLE, "FootnoteDefinition": BlockKind.FOOTNOTE, "HtmlBlock": BlockKind.HTML,
}  # fmt: skip


def parse_note(path: str, data: bytes) -> Note:
    """The note of that path (below the vault) with that content. What cannot be read of it is among its problems."""
    front = read_front_matter(data)
    problems = [front.problem] if front.problem else []
    try:
        data.decode()
    except UnicodeDecodeError as error:
        problems.append(f"it is not UTF-8 (byte {error.start})")
        data = data.decode(errors="replace").encode()
        front = read_front_matter(data)
    reader = _NoteReader(data, front.body)
    reader.read()
    inline_tags = tuple(reader.tags())
    title = front.values.get("title")
    return Note(
        title=title.strip() if isinstance(title, str) and title.strip() else PurePosixPath(path).stem,
        properties=front.values,
        tags=_each_once([*_listed_tags(front.values.get("tags")), *(tag.name for tag in inline_tags)]),
        body=front.body,
        links=tuple(reader.links),
        headings=tuple(reader.headings),
        inline_tags=inline_tags,
        blocks=tuple(reader.blocks),
        fields=tuple(field for _, field in _fields(data, reader.masked, front.body, len(data), reader.line)),
        tasks=tuple(reader.tasks()),
        problems=tuple(problems),
    )


def _listed_tags(value: object) -> list[str]:
    """The tags of the front matter: a list, or words in a string."""
    words = re.split(r"[,\s]+", value) if isinstance(value, str) else value if isinstance(value, list) else []
    names = [
        str(word).strip().lstrip("#") for word in words if isinstance(word, str | int) and not isinstance(word, bool)
    ]
    return [name for name in names if name]


@cache
def _options() -> Any:
    from pyromark import Options as O

    return O.ENABLE_WIKILINKS | O.ENABLE_TABLES | O.ENABLE_TASKLISTS | O.ENABLE_FOOTNOTES | O.ENABLE_MATH


def _each_once(names: list[str]) -> tuple[str, ...]:
    """Sorted; of those that differ in case only the first."""
    return tuple(sorted({fold(name): name for name in reversed(names)}.values()))


class _NoteReader:
    """One pass over the events of the parser. Positions that it keeps are of the file."""

    def __init__(self, data: bytes, body: int) -> None:
        self.data = data
        self.body = body
        self.masked = bytearray(data)
        self.links: list[Link] = []
        self.headings: list[Heading] = []
        self.blocks: list[NoteBlock] = []
        self._items: list[tuple[int, int]] = []
        self._newlines = [match.start() for match in re.finditer(b"\n", data)]

    def line(self, at: int) -> int:
        return bisect_left(self._newlines, at) + 1

    def read(self) -> None:
        from pyromark import events_with_range

        body = self.body
        depth = 0
        for event, place in events_with_range(self.data[body:].decode(), options=_options()):
            if isinstance(event, str):
                if event == "Rule" and not depth:
                    self._add_block(BlockKind.RULE, "", place["start"] + body, place["end"] + body)
                continue
            if "Text" in event:
                continue
            [(what, value)] = event.items()
            if what == "Start":
                self._start(value, place["start"] + body, place["end"] + body, is_top=not depth)
                depth += 1
            elif what == "End":
                depth -= 1
            elif what in _MASKED:
                self._mask(place["start"] + body, place["end"] + body)

    def _mask(self, start: int, end: int) -> None:
        self.masked[start:end] = b" " * (end - start)

    def _start(self, tag: Any, start: int, end: int, *, is_top: bool) -> None:
        name, value = (tag, {}) if isinstance(tag, str) else next(iter(tag.items()))
        if is_top:
            self._add_block(_BLOCKS.get(name, BlockKind.PARAGRAPH), _block_name(value), start, end)
        if name in ("Link", "Image"):
            self._add_link(name, value, start, end)
        elif name == "CodeBlock":
            self._mask(start, end)
        elif name == "Item":
            self._items.append((start, end))
        elif name == "Heading":
            self._add_heading(int(value["level"][1]), start, end)

    def _add_block(self, kind: BlockKind, name: str, start: int, end: int) -> None:
        source = self.data[start:end]
        if kind is BlockKind.QUOTE and (callout := _CALLOUT.match(source)):
            kind, name = BlockKind.CALLOUT, callout[1].decode(errors="replace").strip().lower()
        elif kind is BlockKind.PARAGRAPH and source.startswith(b"$$") and source.rstrip().endswith(b"$$"):
            kind = BlockKind.MATH
        mark = None if kind is BlockKind.CODE else _BLOCK_ID.search(source.rstrip()[-80:])
        own = mark[1].decode() if mark else ""
        if mark and source.startswith(b"^") and len(source.split()) == 1 and self.blocks and not self.blocks[-1].id:
            # an id on a line of its own belongs to the block above it
            above = self.blocks[-1]
            self.blocks[-1] = NoteBlock(above.kind, above.start, above.end, above.line, own, above.name)
            return
        self.blocks.append(NoteBlock(kind, start, end, self.line(start), own, name))

    def _add_heading(self, level: int, start: int, end: int) -> None:
        text = self.data[start:end].decode(errors="replace").strip()
        if text.startswith("#"):
            text = re.sub(r"\s+#+\s*$", "", text.lstrip("#").strip())
        else:
            text = text.rpartition("\n")[0].strip()  # underlined
        self.headings.append(Heading(level, text, start, self.line(start)))

    def _add_link(self, name: str, value: dict[str, Any], start: int, end: int) -> None:
        shape, destination = value["link_type"], value["dest_url"]
        self._mask(start, end)
        if isinstance(shape, dict):  # a wikilink
            kind = LinkKind.EMBED if name == "Image" else LinkKind.WIKILINK
            has_alias = bool(shape["WikiLink"]["has_pothole"])
            alias = self.data[start:end].decode().partition("|")[2].removesuffix("]]") if has_alias else ""
            target = destination.removesuffix("\\") if has_alias else destination
        elif name == "Image" or shape in ("Autolink", "Email") or _SCHEME.match(destination):
            return
        else:
            kind, alias, target = LinkKind.MARKDOWN, "", unquote(destination)
            if not target.partition("#")[0].lower().endswith(NOTE_SUFFIXES):
                return
        self._keep_link(kind, target, alias, start, end)

    def _keep_link(self, kind: LinkKind, whole: str, alias: str, start: int, end: int) -> None:
        target, _, place = whole.partition("#")
        target = " ".join(target.split())
        block = place.rpartition("^")[2].strip() if place.lstrip().startswith("^") else ""
        heading = "" if block else place.strip()
        if target or block or heading:
            self.links.append(Link(kind, target, heading, block, alias.strip(), start, end, self.line(start)))

    def tags(self) -> list[Tag]:
        tags = []
        for match in _TAG.finditer(self.masked, self.body):
            name = _TAG_NAME.match(match[1].decode(errors="replace"))
            if name and name[0].strip("/"):
                tags.append(Tag(name[0].rstrip("/"), self.line(match.start())))
        return tags

    def tasks(self) -> list[NoteTask]:
        tasks = []
        for start, end in self._items:
            match = _TASK.match(self.data, start, end)
            if match is None:
                continue
            at, stop = match.span(2)
            fields = tuple(field for _, field in _fields(self.data, self.masked, at, stop, self.line))
            text = b"".join(_without_fields(self.data, self.masked, at, stop)) if fields else match[2]
            status = TASK_MARKS.get(match[1].decode(errors="replace"), NoteTaskStatus.PENDING)
            tasks.append(NoteTask(status, " ".join(text.decode(errors="replace").split()), self.line(start), fields))
        return tasks


def _block_name(value: object) -> str:
    if isinstance(value, str):
        return value if value != "Indented" else ""  # the label of a footnote
    fenced = value.get("Fenced") if isinstance(value, dict) else None
    return str(fenced).split()[0] if fenced and str(fenced).split() else ""


def _fields(
    data: bytes, masked: bytearray, start: int, end: int, line: Callable[[int], int]
) -> list[tuple[int, Field]]:
    """The inline fields of a part of a note and where they stand. A link may be a value, so values are taken from what is written."""
    if masked.find(b"::", start, end) < 0:
        return []
    spans = {}
    for match in _FIELD.finditer(masked, start, end):
        key = 1 if match[1] is not None else 3
        spans[match.start()] = (match.span(key), match.span(key + 1))
    bracketed = sorted(spans)
    for match in _FIELD_LINE.finditer(masked, start, end):
        if bisect_left(bracketed, match.start()) == bisect_left(bracketed, match.end()):
            spans[match.start()] = (match.span(1), match.span(2))
    return [(at, Field(_text(data, key), _text(data, value), line(at))) for at, (key, value) in sorted(spans.items())]


def _without_fields(data: bytes, masked: bytearray, start: int, end: int) -> list[bytes]:
    """A part of a note but for the fields in brackets."""
    parts = []
    for match in _FIELD.finditer(masked, start, end):
        parts.append(data[start : match.start()])
        start = match.end()
    return [*parts, data[start:end]]


def _text(data: bytes, span: tuple[int, int]) -> str:
    return data[span[0] : span[1]].decode(errors="replace").strip()
