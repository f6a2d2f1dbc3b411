"""A note as passages: each is short enough that its vector means something, and says which note and heading it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from cru.features.vault.notes import BlockKind, Note, NoteBlock

PASSAGE_BYTES = 700
"""About as much as a passage has; a block is only divided if it has more than twice that."""
MOST_PASSAGES = 400
"""Of one note: what follows is found by its words only."""
_CODE_BYTES = 400
"""Of a block of code: its beginning says what it is about."""
_LONGEST_WORD = 60
"""What is longer is no word: data, an address."""
_WIKILINK = re.compile(r"!?\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_MARKS = re.compile(r"[*_`~=|>#\[\]{}<]+|^[ \t]*[-+][ \t]+(?:\[.\])?", re.M)
_BREAK = re.compile(rb"(?<=[.!?;:])\s+|\s*\n\s*|\s+")


class Passage(Struct, frozen=True):
    """A part of a note. start, end: bytes of the file; text: what is embedded, with the note's title and the heading above."""

    start: int
    end: int
    text: str


def split_note(note: Note, data: bytes) -> list[Passage]:
    """At least one: a note without text is its title."""
    passages: list[Passage] = []
    for heading, start, end in _parts(note, data):
        text = plain_text(data[start:end].decode(errors="replace"))
        if text:
            above = f"{note.title}. {heading}. " if heading and heading != note.title else f"{note.title}. "
            passages.append(Passage(start, end, above + text))
        if len(passages) == MOST_PASSAGES:
            break
    return passages or [Passage(note.body, note.body, note.title)]


def plain_text(text: str) -> str:
    """Without marks of Markdown, addresses and data: words as a reader sees them."""
    text = _LINK.sub(r"\1", _WIKILINK.sub(r"\1", text))
    return " ".join(word for word in _MARKS.sub(" ", text).split() if len(word) <= _LONGEST_WORD and "://" not in word)


def _parts(note: Note, data: bytes) -> Iterator[tuple[str, int, int]]:
    """(heading, start, end): neighbouring blocks below one heading together, as long as they are short."""
    headings = {heading.start: heading.text for heading in note.headings}
    heading, start, end = "", -1, -1
    for block in note.blocks:
        is_heading = block.kind is BlockKind.HEADING
        if start >= 0 and (is_heading or block.end - start > PASSAGE_BYTES):
            yield heading, start, end
            start = -1
        if is_heading:
            heading = headings.get(block.start, "")
            continue
        *whole, (last_start, end) = _pieces(block, data)
        for piece_start, piece_end in whole:
            yield heading, piece_start if start < 0 else start, piece_end
            start = -1
        start = last_start if start < 0 else start
    if start >= 0:
        yield heading, start, end


def _pieces(block: NoteBlock, data: bytes) -> Iterable[tuple[int, int]]:
    """A block, or if it is long parts of it, divided behind a sentence if possible, else behind a word."""
    start, end = block.start, block.end
    if block.kind is BlockKind.CODE:
        end = _between_characters(data, min(end, start + _CODE_BYTES))
    while end - start > 2 * PASSAGE_BYTES:
        cut = _cut(data, start)
        yield start, cut
        start = cut
    yield start, end


def _cut(data: bytes, start: int) -> int:
    """Where a passage that begins there ends: at the last end of a sentence, else of a line, else of a word."""
    best, rank = start + PASSAGE_BYTES, -1
    for match in _BREAK.finditer(data, start + PASSAGE_BYTES // 2, start + PASSAGE_BYTES):
        quality = 2 if data[match.start() - 1 : match.start()] in b".!?;:" else 1 if b"\n" in match[0] else 0
        if quality >= rank:
            best, rank = match.end(), quality
    return _between_characters(data, best)


def _between_characters(data: bytes, at: int) -> int:
    """There, or where the character begins in the middle of which that is."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at
