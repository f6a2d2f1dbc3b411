"""Lines broken at words, for a terminal that would break them anywhere."""

from __future__ import annotations

import re

_WORD = re.compile(r"( *)((?:[^ `]|`(?:[^`]*`)?)+)")
"""The blanks before a word, and the word. What stands in backquotes is one word, so that a command can be copied from its row."""
_COMMANDS = ("resume with: ", "this conversation: ")
"""How lines begin that end with a command: a line break in it would run the half of it that is pasted first."""


def wrap_words(text: str, columns: int, hang: int = 0) -> str:
    """Break each line that takes more than `columns` columns at blanks. Its further rows are indented as the line is, and by `hang`
    more blanks. A word that is longer than a row stands where it would, for the terminal to break."""
    return "\n".join(row for line in text.split("\n") for row in _rows(line, columns, hang))


def _rows(line: str, columns: int, hang: int) -> list[str]:
    if _width(line) <= columns or line.startswith(_COMMANDS):
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")) + hang)
    rows: list[str] = []
    row = ""
    for blanks, word in _words(line, columns - len(indent)):
        is_long = _width(word) > columns - len(indent)
        if row.strip() and not is_long and (_width(row) % columns or columns) + _width(blanks + word) > columns:
            rows.append(row)
            row = indent + word
        else:
            row += blanks + word
    return [*rows, row + line[len(line.rstrip(" ")) :]]


def _words(line: str, columns: int) -> list[tuple[str, str]]:
    """The words of a line, each with the blanks before it; what stands in backquotes and is longer than a row is several."""
    words = []
    for match in _WORD.finditer(line):
        blanks, word = match.groups()
        if " " in word and _width(word) > columns:
            first, *others = word.split(" ")
            words += [(blanks, first), *((" ", other) for other in others)]
        else:
            words.append((blanks, word))
    return words


def _width(text: str) -> int:
    """How many columns it takes; wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
