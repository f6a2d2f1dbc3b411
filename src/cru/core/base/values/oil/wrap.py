"""Texts with styles as lines of at most so many columns: broken at words, between wide characters, and within words that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.cells import cell_len

from cru.core.base.values.oil.model import PLAIN, OilStyle
from cru.core.base.values.visible import visible

JOINERS = "\u200d\ufe0f"
"""What makes pictures of several characters."""
TAB = 4
_WIDE = "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
_TOKEN = re.compile(rf"[{_WIDE}]|[ ]+|[^ {_WIDE}]+")


class StyledText(NamedTuple):
    """Characters that look the same."""

    text: str
    style: OilStyle = PLAIN


Line = tuple[StyledText, ...]


class _Unbroken(NamedTuple):
    """What is not broken. columns: how wide it is"""

    spans: Line
    columns: int
    is_blank: bool


def clean(text: str) -> str:
    """The text with marks for what cannot be seen; line ends stay, tabs are blanks."""
    if text.isascii() and text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(visible(line.expandtabs(TAB), keep=JOINERS) for line in lines)


def columns_of(line: Iterable[StyledText]) -> int:
    return sum(cell_len(span.text) for span in line)


def wrap(spans: Iterable[StyledText], columns: int) -> list[Line]:
    """The lines; at least one. The texts are clean."""
    lines: list[Line] = []
    for paragraph in _paragraphs(spans):
        if columns_of(paragraph) <= columns:
            lines.append(paragraph)
        else:
            lines += _broken(paragraph, columns)
    return lines


def _paragraphs(spans: Iterable[StyledText]) -> Iterator[Line]:
    line: list[StyledText] = []
    for span in spans:
        first, *more = span.text.split("\n")
        line.append(StyledText(first, span.style))
        for text in more:
            yield tuple(line)
            line = [StyledText(text, span.style)]
    yield tuple(line)


def _broken(paragraph: Line, columns: int) -> Iterator[Line]:
    line: list[StyledText] = []
    room = columns
    blanks: list[StyledText] = []
    for word in _words(paragraph):
        if word.is_blank:
            blanks += word.spans
            continue
        need = word.columns + columns_of(blanks)
        if need > room and line:
            yield tuple(line)
            line, blanks, room = [], [], columns
            need = word.columns
        if need <= room:
            line += [*blanks, *word.spans]
            room -= need
        else:  # alone on a line, and too long for it; an indent before it goes
            *whole, rest = cut_up(word.spans, columns)
            yield from whole
            line, room = list(rest), columns - columns_of(rest)
        blanks = []
    yield tuple(line)


def _words(paragraph: Line) -> Iterator[_Unbroken]:
    """Words may go over several spans."""
    word: list[StyledText] = []
    for span in paragraph:
        for token in _TOKEN.findall(span.text):
            is_blank = token[0] == " "
            if is_blank or (len(token) == 1 and cell_len(token) == 2):
                if word:
                    yield _Unbroken(tuple(word), columns_of(word), False)
                    word = []
                yield _Unbroken((StyledText(token, span.style),), cell_len(token), is_blank)
            else:
                word.append(StyledText(token, span.style))
    if word:
        yield _Unbroken(tuple(word), columns_of(word), False)


def cut_up(spans: Line, columns: int) -> list[Line]:
    """Lines of at most that many columns, broken anywhere but within a picture or before a mark."""
    lines: list[Line] = []
    line: list[StyledText] = []
    room = columns
    for span in spans:
        text = ""
        for cluster in _clusters(span.text):
            width = cell_len(cluster)
            if width > room and (line or text):
                lines.append((*line, StyledText(text, span.style)))
                line, text, room = [], "", columns
            text, room = text + cluster, room - width
        line.append(StyledText(text, span.style))
    return [*lines, tuple(line)]


def _clusters(text: str) -> Iterator[str]:
    cluster = ""
    for char in text:
        if cluster and (char in JOINERS or cluster[-1] == "\u200d" or (not char.isascii() and cell_len(char) == 0)):
            cluster += char
        else:
            if cluster:
                yield cluster
            cluster = char
    if cluster:
        yield cluster
