"""A stranger's text for a person's eyes: what a terminal would not show as a character of its own is shown by its number."""

from __future__ import annotations

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


LONGEST_RUN, DEEPEST_INDENT = 8, 32
"""Blanks that are shown as they are, within a line and at its beginning."""


def fold_blanks(line: str) -> str:
    """A line with the number of blanks in the place of many of them: nothing behind them is out of sight."""
    import re

    text = line.lstrip(" \t")
    indent = line[: len(line) - len(text)]
    shown = re.sub(f"[ \t]{{{LONGEST_RUN + 1},}}", lambda match: f" {_count(len(match[0]), 'blank')} ", text)
    if len(indent) > (DEEPEST_INDENT if text else LONGEST_RUN):
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
