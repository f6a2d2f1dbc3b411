"""How what stands in other people's files is shown on the lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from cru.core.base.values.visible import visible

SHOWN = 5
"""What is wrong in a file is told so often at the start of a session."""
LINE = 500
"""Characters of a line that is told."""


def limit_by_file(texts: Iterable[tuple[str, str]], command: str) -> list[str]:
    """Of (file, text) the first few of each file, each on one line; of the rest only their number, and the command that shows them."""
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
    """A stranger's words as one line that a terminal shows as it is."""
    plain = visible(text[: LINE + 1])
    return plain if len(text) <= LINE and len(plain) <= LINE else plain[: LINE - 1] + "…"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
