"""What only a terminal sees: Markdown block by block, and one line of progress on stderr. Never loaded for pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from cru.faces.cli.terminal import printable


class Markdown:
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
        from rich.markdown import Markdown as Rendered

        self._before()
        self._console.print(Rendered(printable(block).strip("\n")))


def _block_end(text: str) -> int:
    """Where the first whole block ends, -1 if none does yet."""
    fenced = False
    at = 0
    for line in text.split("\n")[:-1]:
        at += len(line) + 1
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.strip() and text[:at].strip():
            return at
    return -1


ERASE = "\r\x1b[2K"


class Progress:
    """One line on stderr that goes away again."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, text: str) -> None:
        """Replace it; "" is no line."""
        if not text:
            self.clear()
            return
        away = ERASE if self._shown else ""
        self._shown = True
        text = _fitting(text)
        self._write(f"{away}\x1b[2m{text} …\x1b[0m")

    def clear(self) -> None:
        if self._shown:
            self._write(ERASE)
            self._shown = False

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            pass  # the terminal has gone; the turn goes on


def _fitting(text: str) -> str:
    """At most one row of the terminal: only one can be taken away again."""
    try:
        columns = os.get_terminal_size(2).columns or 80
    except OSError:
        columns = 80
    if len(text) * 2 + 3 <= columns:
        return text
    from cru.faces.cli.choosing import cut

    return cut(text, columns - 3)
