"""What only a terminal sees: Markdown block by block, and one line of progress on stderr. Never loaded for pipes."""

from __future__ import annotations

import sys
from typing import Any

from cru.faces.cli.terminal import printable


class Markdown:
    """Collects text until a block is whole (a blank line outside a fence), then prints it rendered. rich loads at the first."""

    def __init__(self) -> None:
        self._pending = ""
        self._console: Any = None

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


class Progress:
    """One line on stderr that goes away again."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, text: str) -> None:
        self.clear()
        if text:
            self._write(f"\x1b[2m{text} …\x1b[0m")
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            self._write("\r\x1b[2K")
            self._shown = False

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            pass  # the terminal has gone; the turn goes on
