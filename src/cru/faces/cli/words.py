"""Break lines at words, for a terminal that would break them anywhere."""

from __future__ import annotations

import re

_WORD = re.compile(
    r"""([ ]*)(                                                                 # the blanks before it
      (?:(?<=:[ ])cru[ ](?!has[ ]|cannot[ ])|pip[ ]install[ ])(?:(?!;[ ]|,[ ]|[ ]\()[^`])*[;,]?  # a command
    | [^\w`~/ ]*~?/[^ `]+(?:[ ][^ /`]+/[^ `]*){1,2}                              # a path: `/Users/me/My Notes/a.md`
    | (?:[^ `]|`(?:[^`]*`)?)+
    )""",
    re.VERBOSE,
)
"""What stays on one row: commands, paths with blanks and text in backquotes stay whole, because a person copies them."""
_COMMANDS = ("resume with: ", "this conversation: ", "  s, p and a keep the rule  ")
"""How lines begin that are a command to their end. Pasted, the first half of a broken one would run."""


def wrap_words(text: str, columns: int, hang: int = 0) -> str:
    """Break lines that are wider than `columns` at blanks, and indent their further rows as the line is, by `hang` columns more.

    A word that is longer than a row starts where it would, and the terminal breaks it: copied from there it is whole.
    """
    return "\n".join(row for line in text.split("\n") for row in _rows(line, columns, hang))


def _rows(line: str, columns: int, hang: int) -> list[str]:
    if _width(line) <= columns or line.startswith(_COMMANDS):
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")) + hang)
    rows: list[str] = []
    row, used = "", 0
    for blanks, word in _WORD.findall(line):
        width = _width(word)
        is_long = width > columns - len(indent)
        if row and not is_long and (used % columns or columns) + len(blanks) + width > columns:
            rows.append(row)
            row, used = indent + word, len(indent) + width
        else:
            row += blanks + word
            used += len(blanks) + width
    return [*rows, row + line[len(line.rstrip(" ")) :]]


def _width(text: str) -> int:
    """Return how many columns the text takes; wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
