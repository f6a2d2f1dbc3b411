"""How large the terminal is, and what fits. Loads prompt_toolkit, and not rich."""

from __future__ import annotations

import os

from prompt_toolkit.data_structures import Size
from prompt_toolkit.utils import get_cwidth


def terminal_size(fd: int) -> Size:
    """Rows and columns as they are now; 24 and 80 if nobody knows."""
    try:
        columns, rows = os.get_terminal_size(fd)
    except OSError:
        columns = rows = 0
    return Size(rows=rows or 24, columns=columns or 80)


def rows_of(line: str, columns: int) -> list[str]:
    """A line as a terminal of that many columns breaks it; wide characters take two."""
    rows, row, width = [], "", 0
    for char in line:
        wide = get_cwidth(char)
        if width + wide > columns:
            rows.append(row)
            row, width = "", 0
        row, width = row + char, width + wide
    return [*rows, row]


def rows_at_words(line: str, columns: int) -> list[str]:
    """The same broken at blanks, which stand in no row then; a word that is longer than a row is broken anywhere."""
    rows, row, width = [], "", 0
    for char in line:
        wide = get_cwidth(char)
        if width + wide > columns:
            before, _, word = ("", "", "") if char == " " else row.rpartition(" ")
            rows.append(before if before.strip() else row)
            row = word if before.strip() else ""
            width = get_cwidth(row)
            if char == " ":
                continue
        row, width = row + char, width + wide
    return [*rows, row]


def fit(line: str, columns: int) -> str:
    """A line cut to at most that many columns."""
    return line if get_cwidth(line) <= columns else rows_of(line, max(columns - 1, 1))[0] + "…"
