"""Longer texts on the terminal, a screenful at a time; they stay in the scrollback."""

from __future__ import annotations

from io import StringIO

from rich.cells import cell_len

from cru.faces.cli.console import printable
from cru.faces.cli.dialogs.line_editor import LineEditor


async def show_paged(line: LineEditor, text: str, kind: str) -> bool:
    """Print a text (`kind`: markdown is rendered, everything else stands as it is); False if the person cancelled."""
    text = printable(text).expandtabs(4).rstrip("\n")
    lines = _rendered(text, line.columns) if kind == "markdown" else [f"  {row}".rstrip() for row in text.split("\n")]
    heights = [1] * len(lines) if kind == "markdown" else [cell_len(row) for row in lines]
    at = 0
    while True:
        start, at = at, _fitting(heights, at, line.rows - 3, line.columns)
        line.write("".join(f"{row}\n" for row in lines[start:at]))
        if at == len(lines):
            return True
        typed = await line.read(f"{at} of {len(lines)} lines, Enter more, a all, q enough, Esc cancels")
        word = "" if typed is None else typed.strip().lower()
        if typed is None or word in ("q", "quit"):
            return typed is not None
        if word in ("a", "all"):
            line.write("".join(f"{row}\n" for row in lines[at:]))
            return True


def _fitting(widths: list[int], at: int, rows: int, columns: int) -> int:
    """Where the next screenful ends; at least one line is on it."""
    while at < len(widths):
        rows -= max(1, -(-widths[at] // columns))
        at += 1
        if at < len(widths) and rows - max(1, -(-widths[at] // columns)) < 0:
            break
    return at


def _rendered(text: str, columns: int) -> list[str]:
    from rich.console import Console
    from rich.markdown import Markdown

    out = StringIO()
    Console(file=out, force_terminal=True, width=columns).print(Markdown(text))
    return out.getvalue().rstrip("\n").split("\n")
