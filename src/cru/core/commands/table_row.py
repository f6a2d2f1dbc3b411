"""A row of what a command lists."""

from __future__ import annotations

NARROW = 20
"""Columns below which a description is left to the terminal."""


def table_row(head: str, about: str, columns: int) -> str:
    """`about` behind `head`, broken at words below its own column; in one line for 0 columns (what is no terminal)."""
    if not columns or len(head) + len(about) < columns or columns - len(head) <= NARROW:
        return f"{head}{about}".rstrip()
    import textwrap

    return textwrap.fill(
        about, columns - 1, initial_indent=head, subsequent_indent=" " * len(head),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
