"""Markdown on a terminal as it comes: block by block. Never loaded for pipes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cru.faces.cli.console import printable


class MarkdownStream:
    """Collects text until a block is whole (a blank line outside a fence), then prints it rendered. rich loads at the first.
    `before` is called before anything is printed."""

    def __init__(self, before: Callable[[], object]) -> None:
        self._pending = ""
        self._before = before
        self._console: Any = None

    @property
    def waiting(self) -> bool:
        """Whether there is text that is not printed yet."""
        return bool(self._pending.strip())

    def feed(self, text: str) -> None:
        self._pending += text
        while True:
            cut = _block_end(self._pending)
            if cut < 0:
                return
            block, self._pending = self._pending[:cut], self._pending[cut:]
            self._print(block)

    def flush(self) -> None:
        """Print what is left."""
        block, self._pending = self._pending, ""
        self._print(block)

    def _print(self, block: str) -> None:
        if not block.strip():
            return
        if self._console is None:
            from rich.console import Console

            self._console = Console()
        from cru.faces.cli.terminal.markdown import print_markdown

        self._before()
        print_markdown(self._console, printable(block).strip("\n"))


FENCE = re.compile(r"(?:\s|[-*+]\s|>|\d+[.)]\s)*(`{3,}(?=[^`]*$)|~{3,})")
HTML = re.compile(r" {0,3}<(?:(!--)|(\?)|(!\[CDATA\[)|(?:pre|script|style|textarea)(?:[\s>]|$))", re.IGNORECASE)
HTML_ENDS = ("-->", r"\?>", r"\]\]>", r"</(?:pre|script|style|textarea)>")


def _block_end(text: str) -> int:
    """Where the first whole block ends, -1 if none does yet. Code and HTML that says where it ends may hold blank lines."""
    until: re.Pattern[str] | None = None
    at = 0
    for line in text.split("\n")[:-1]:
        at += len(line) + 1
        if until is not None:
            until = None if until.search(line) else until
            continue
        until = _until(line)
        if until is None and not line.strip() and text[:at].strip():
            return at
    return -1


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
