"""Markdown on a terminal as it comes: block by block. Never loaded for pipes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from cru.faces.cli.console import StandardOutput, print_above_prompt, printable, takes_styles

if TYPE_CHECKING:
    from rich.console import Console


FENCE = re.compile(r"(?:\s|[-*+]\s|>|\d+[.)]\s)*(`{3,}(?=[^`]*$)|~{3,})")
HTML = re.compile(r" {0,3}<(?:(!--)|(\?)|(!\[CDATA\[)|(?:pre|script|style|textarea)(?:[\s>]|$))", re.IGNORECASE)
HTML_ENDS = ("-->", r"\?>", r"\]\]>", r"</(?:pre|script|style|textarea)>")

ENCODING = ("utf-8", "surrogatepass")
TAIL_BYTES = 4 << 10
MOST_BYTES = 256 << 10
"""Of a block that is rendered, which takes up to seventy times as much memory; more is shown as it was written, in pieces of this size."""


class MarkdownStream:
    """Collects text until a block is whole (a blank line outside a fence), then prints it rendered, unless it has more than MOST_BYTES.
    rich loads at the first. `before` is called before anything is printed."""

    def __init__(self, before: Callable[[], object]) -> None:
        self._before = before
        self._console: Console | None = None
        self._is_raw = False
        self._begin_block()

    def show_raw(self) -> None:
        """Nothing is rendered: each line is printed when it is whole."""
        self._is_raw = True

    def _begin_block(self) -> None:
        # As bytes: many small strings would take several times the room of their text.
        self._block, self._line, self._boundary = bytearray(), bytearray(), _BlockBoundary()
        self._line_has_text = self._is_plain = False

    @property
    def waiting(self) -> bool:
        """Whether there is text that is not printed yet."""
        return self._boundary.has_text or self._line_has_text

    def tail(self) -> str:
        """The end of what is not printed yet."""
        rest = TAIL_BYTES - len(self._line)
        return (self._block[-rest:] + self._line if rest > 0 else self._line[-TAIL_BYTES:]).decode("utf-8", "ignore")

    def feed(self, text: str) -> None:
        """Add to the text. Each line is looked at once, when it is whole."""
        *ends, rest = text.split("\n")
        for end in ends:
            self._line += end.encode(*ENCODING)
            self._end_line()
        self._line += rest.encode(*ENCODING)
        self._line_has_text = self._line_has_text or bool(rest.strip())

    def _end_line(self) -> None:
        line = self._line.decode(*ENCODING)
        self._block += self._line
        self._block += b"\n"
        self._line, self._line_has_text = bytearray(), False
        if self._is_raw:
            self._print_lines(self._block.removesuffix(b"\n"))
            self._begin_block()
        elif self._boundary.is_at(line):
            self._print_block()
        elif len(self._block) > MOST_BYTES:
            self._print_lines(self._block.removesuffix(b"\n"))
            self._block.clear()

    def flush(self) -> None:
        """Print what is left."""
        self._block += self._line
        self._print_block()

    def _print_block(self) -> None:
        """While it is rendered, the block is kept once."""
        if self._is_plain or self._is_raw or len(self._block) > MOST_BYTES:
            self._print_lines(self._block.rstrip(b"\n"))
            self._begin_block()
            return
        has_text, block = self.waiting, printable(self._block.decode(*ENCODING)).strip("\n")
        self._begin_block()
        if has_text:
            from cru.faces.cli.terminal.markdown import print_markdown

            print_above_prompt(lambda: print_markdown(self._ready_console(), block))

    def _print_lines(self, lines: bytearray) -> None:
        """Print lines of a large block as they were written; what follows of it is printed likewise."""
        text = printable(lines.decode(*ENCODING))
        if lines:
            shown = text if self._is_plain or self._is_raw else text.lstrip("\n")
            print_above_prompt(lambda: self._write(f"{shown}\n"))
            self._is_plain = True

    def _write(self, text: str) -> None:
        file = self._ready_console().file  # past rich, which would copy it many times
        file.write(text)
        file.flush()

    def _ready_console(self) -> Console:
        """The console to print on at once."""
        if self._console is None:
            from cru.faces.cli.terminal.markdown import LineConsole

            self._console = LineConsole(file=StandardOutput.text(), color_system="auto" if takes_styles(1) else None)
        self._before()
        return self._console


class _BlockBoundary:
    """Where a block ends: at a blank line behind text. Code and HTML that says where it ends may hold blank lines."""

    def __init__(self) -> None:
        self.has_text = False
        self._until: re.Pattern[str] | None = None

    def is_at(self, line: str) -> bool:
        """Whether this line, the block's next, is its last."""
        if self._until is not None:
            self._until = None if self._until.search(line) else self._until
            return False
        self._until = _until(line)
        is_blank = not line.strip()
        self.has_text = self.has_text or not is_blank
        return is_blank and self.has_text


def _until(line: str) -> re.Pattern[str] | None:
    """What ends the block that a line opens; None if a blank line does, or the line itself."""
    fence = FENCE.match(line)
    if fence is not None:
        return re.compile(rf"^[\s>]*{fence[1][0]}{{{len(fence[1])},}}\s*$")
    html = HTML.match(line)
    if html is None:
        return None
    end = re.compile(HTML_ENDS[(html.lastindex or 4) - 1], re.IGNORECASE)
    return None if end.search(line, html.end()) else end
