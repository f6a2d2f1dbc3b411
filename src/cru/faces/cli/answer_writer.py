"""The model's words on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from cru.faces.cli.console import StandardOutput, TerminalOutput, break_at_words, print_above_prompt, printable

if TYPE_CHECKING:
    from cru.faces.cli.terminal.live import LiveRegion
    from cru.faces.cli.terminal.markdown_stream import MarkdownStream

VERBATIM = ("diff", "idempotency-key", "trace", "vault")
"""Commands that show files, answers and tables. Their lines are not broken at words."""


class AnswerWriter:
    """The model's words on standard output, as they come; on a terminal Markdown is rendered block by block.

    clear: takes the progress line away, before anything is written
    report: says on the progress line what is going on; "": nothing is
    live: shows what is not printed yet
    """

    def __init__(
        self, clear: Callable[[], None], report: Callable[[str], None], live: LiveRegion | None = None
    ) -> None:
        self.output = TerminalOutput()
        self.is_terminal = sys.stdout.isatty()
        self._clear, self._report, self._live = clear, report, live
        self._markdown = self._open_markdown() if self.is_terminal else None
        self._is_line_start = True
        self._is_first = True
        self._length = 0

    def _open_markdown(self) -> MarkdownStream:
        from cru.faces.cli.terminal.markdown_stream import MarkdownStream

        stream = MarkdownStream(self._clear)
        if self._live is not None:
            self._live.follow(stream.tail)
        return stream

    def show_raw(self) -> None:
        """No Markdown is rendered."""
        if self._markdown is not None and self._live is not None:
            self._markdown.show_raw()
        else:
            self._markdown = None

    def write(self, text: str) -> None:
        if self._is_first and text.startswith("\n"):
            text = text[1:]
        self._is_first = False
        if not text:
            return
        if self._markdown is not None:
            self._length += len(text)
            self._markdown.feed(text)
            if self._live is None:
                self._report(f"answering, {self._length} characters" if self._markdown.waiting else "")
        else:
            self._clear()
            self.output.write((printable(text) if self.is_terminal else text).encode("utf-8", "replace"))
        if self._live is not None:
            self._report("answering")
            self._live.changed()
        self._is_line_start = text.endswith("\n")

    def print_block(self, text: str, is_drawn: bool = False) -> None:
        """Something else than the answer, on lines of its own. is_drawn: it is ready for the terminal."""
        self.end_line()
        shown = (printable(text) if self.is_terminal and not is_drawn else text).rstrip()
        print_above_prompt(lambda: self.output.write(f"{shown}\n".encode("utf-8", "replace")))

    def print_command(self, name: str, text: str) -> None:
        """Print what a command shows, as `print_block` does."""
        self.print_block(text if name in VERBATIM else break_at_words(text, StandardOutput.fd))

    def is_within_line(self) -> bool:
        """Whether an answer stands on the terminal whose last line is not whole."""
        return self.is_terminal and self._markdown is None and not self._is_line_start

    def leave_line(self) -> None:
        """What is written elsewhere on the terminal begins a line."""
        if self.is_within_line():
            self.output.write(b"\n")
            self._is_line_start = True

    def end_line(self) -> None:
        self._clear()
        self._length = 0
        if self._markdown is not None:
            self._markdown.flush()
        elif not self._is_line_start:
            self.output.write(b"\n")
        self._is_line_start = True

    def end(self) -> None:
        """The answer is whole."""
        self.end_line()
        self._is_first = True
