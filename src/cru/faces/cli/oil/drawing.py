"""A view as text for one of the standard streams: with the terminal's colours, or plain for a pipe, a file, TERM=dumb and $NO_COLOR.
Loads rich."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from cru.core.base.values.oil.layout import COLUMNS, lay_out
from cru.core.base.values.oil.model import PLAIN, OilNode, OilStyle
from cru.core.base.values.oil.wrap import StyledText
from cru.faces.cli.console import erase_prompt, takes_styles, write_error

COLOURS = {"gray": "white", "white": "bright_white", "darkgray": "bright_black", "reset": "default"}
"""By what rich calls them, where that is another name."""
SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}


def draw(view: OilNode, fd: int, mark: str = "") -> str:
    """The lines of a view, the first one behind `mark`, the others below it."""
    indent = cell_len(mark)
    width = columns_of(fd)
    paint = _painted if takes_styles(fd) else _plain
    lines = [paint(line) for line in lay_out(view, max(width - indent, 1))]
    return "\n".join(f"{' ' * indent if at else mark}{line}".rstrip() for at, line in enumerate(lines)) or mark


def columns_of(fd: int) -> int:
    """How wide the terminal is; of anything else as wide as plain text is."""
    try:
        return os.get_terminal_size(fd).columns or COLUMNS
    except OSError:
        return COLUMNS


def say_drawn(text: str) -> None:
    """What `draw` gave, on stderr."""
    erase_prompt()
    write_error(f"{text}\n")


def _plain(line: Iterable[StyledText]) -> str:
    return "".join(span.text for span in line)


def _painted(line: Iterable[StyledText]) -> str:
    return "".join(
        span.text if span.style == PLAIN else _style(span.style).render(span.text, color_system=_system())
        for span in line
    )


@cache
def _system() -> ColorSystem:
    return SYSTEMS[Console(force_terminal=True).color_system or "standard"]


@cache
def _style(style: OilStyle) -> Style:
    return Style(
        color=COLOURS.get(style.fg, style.fg) or None, bgcolor=COLOURS.get(style.bg, style.bg) or None, bold=style.bold or None,
        dim=style.dim or None, italic=style.italic or None, underline=style.underline or None, reverse=style.reverse or None,
    )  # fmt: skip
