"""A stranger's text for a person's eyes: what a terminal would not show as a character of its own is shown by its number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

FILLERS = frozenset(
    map(
        chr,
        (
            *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
"""Printable by name, and nothing to see: blanks in the shape of letters, and what only selects another shape."""
OVERLAY = 1
"""Combining class of strokes through the character before."""
MARKS = 2
"""On one letter; more would paint over the lines around."""


def visible(text: str, keep: str = "") -> str:
    """The same, with `\\u202e` and its like in the place of what is not visible. keep: characters that stay all the same."""
    if text.isascii() and text.isprintable():
        return text
    out, marks = [], MARKS  # nothing stands before the first one that it could be a mark of
    for char in text:
        marks = _marks(char, marks)
        shown = char in keep or (char.isprintable() and char not in FILLERS and marks <= MARKS)
        out.append(char if shown else ascii(char)[1:-1])
    return "".join(out)


def _marks(char: str, before: int) -> int:
    """How many marks stand on the last letter, this one among them; more than MARKS where there is no letter, or one too many."""
    if char.isascii():
        return 0 if char.isalpha() else MARKS
    from unicodedata import category, combining

    kind = category(char)
    if kind in ("Mn", "Me"):
        return MARKS + 1 if kind == "Me" or combining(char) == OVERLAY else before + 1
    return 0 if kind[0] in "LM" and char not in FILLERS else MARKS


_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
"""What joins letters and emoji of real texts, and chooses their shape."""
_HIDDEN_RANGES = (
    *(
        (0, 9),
        (11, 32),
        (127, 160),
        (0xAD, 0xAE),
        (0x34F, 0x350),
        (0x61C, 0x61D),
        (0x115F, 0x1161),
        (0x17B4, 0x17B6),
        (0x180B, 0x1810),
    ),
    *(
        (0x200B, 0x2010),
        (0x2028, 0x202F),
        (0x2060, 0x2070),
        (0x2800, 0x2801),
        (0x3164, 0x3165),
        (0xFE00, 0xFE10),
        (0xFEFF, 0xFF00),
    ),
    *(
        (0xFFA0, 0xFFA1),
        (0xFFF0, 0xFFFC),
        (0x13430, 0x13440),
        (0x1BCA0, 0x1BCA4),
        (0x1D173, 0x1D17B),
        (0xE0000, 0xE1000),
    ),
)
"""What a terminal shows as nothing, or obeys: controls, what turns the direction of text, fillers, selectors, tags."""


def mark_hidden(text: str, is_continued: bool = False) -> str:
    """Prose for a terminal, marked as `visible` does it; but ends of lines, tabs and letters of all languages with their marks stay, and so
    does what joins letters and emoji where it stands between such. is_continued: something was shown before it."""
    shown = text.translate(_marks_of_hidden())
    if not any(char in shown for char in _JOINERS):
        return shown
    before, out = "é" if is_continued else "a", []
    for char in shown:
        joins = char not in _JOINERS or not before.isascii() or (char in "\ufe0e\ufe0f" and before in "0123456789#*")
        out.append(char if joins else _mark_of(ord(char)))
        before = char if joins and char not in "\u200c\u200d" else "a"  # never two of them in a row
    return "".join(out)


def mark_in_place(text: str) -> str:
    """The same for an editor, where each character keeps its place: what is hidden is shown as U+FFFD, but controls, which editors show."""
    return text.translate(_places_of_hidden())


@cache
def _places_of_hidden() -> dict[int, str]:
    return dict.fromkeys((code for code in _marks_of_hidden() if code >= 0xA0), "\ufffd")


def _mark_of(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else ascii(chr(code))[1:-1]


@cache
def _marks_of_hidden() -> dict[int, str]:
    codes = (code for first, behind in _HIDDEN_RANGES for code in range(first, behind))
    return {code: _mark_of(code) for code in codes if chr(code) not in _JOINERS}


def set_in(text: str) -> str:
    """A text whose further lines are set in, so that none of them looks like the beginning of something else."""
    return f"\n{CONTINUED}".join(text.splitlines())


CONTINUED = "    "
LONGEST_RUN, DEEPEST_INDENT = 8, 32
"""Blanks that are shown as they are, within a line and at its beginning."""


def fold_blanks(line: str, longest: int = LONGEST_RUN) -> str:
    """A line with the number of blanks in the place of more than `longest` of them: nothing behind them is out of sight."""
    text = line.lstrip(" \t")
    indent = line[: len(line) - len(text)]
    shown = re.sub(f"[ \t]{{{longest + 1},}}", lambda match: f" {_count(len(match[0]), 'blank')} ", text)
    if len(indent) > (DEEPEST_INDENT if text else longest):
        indent = f"{_count(len(indent), 'blank')} "
    return indent.replace("\t", "    ") + shown.replace("\t", " ")


def whole_lines(text: str) -> list[str]:
    """All of a text that a person decides about, by lines: what cannot be seen as marks, many blanks or empty lines as their number."""
    lines: list[str] = []
    empty = 0
    for line in (*text.split("\n"), "end"):
        if not line.strip(" \t"):
            empty += 1
            continue
        if empty:
            lines.append(_count(empty, "empty line") if empty > 1 else "")
            empty = 0
        lines.append(visible(fold_blanks(line)))
    return lines[:-1] or [""]


def _count(number: int, noun: str) -> str:
    return f"⟨{number:,} {noun}{'' if number == 1 else 's'}⟩"


SHOWN = 5
"""Problems of one file that the start of a session shows."""
LINE = 500
"""Characters of a line that is shown."""


def limit_by_file(texts: Iterable[tuple[str, str]], command: str) -> list[str]:
    """Return the first few texts about each file, each on one line, and for the rest their number and the command that shows them.

    texts: pairs of a file and a text
    """
    by_file: dict[str, list[str]] = {}
    for file, text in texts:
        by_file.setdefault(file, []).append(text)
    lines: list[str] = []
    for file, of_file in by_file.items():
        lines += [in_a_line(text) for text in of_file[:SHOWN]]
        if len(of_file) > SHOWN:
            lines.append(in_a_line(f"{file}: and {len(of_file) - SHOWN} more: `{command}`"))
    return lines


def in_a_line(text: str) -> str:
    """Return a stranger's words as one line that a terminal shows as it is."""
    plain = visible(text[: LINE + 1])
    return plain if len(text) <= LINE and len(plain) <= LINE else plain[: LINE - 1] + "…"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
