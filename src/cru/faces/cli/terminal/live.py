"""What stands above the input while the model works, and changes: the end of the answer, what runs, what waits to be sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from cru.core.events.stream import Published, StatusChanged, Stream, ToolOutput
from cru.faces.cli.console import one_line, printable
from cru.faces.cli.terminal.size import fit, rows_at_words, rows_of

TAIL_ROWS, OUTPUT_ROWS, QUEUE_ROWS = 12, 5, 5
KEPT = 4 << 10
"""Characters of a tool's output that are looked at."""
PATIENCE = 1.0
"""Seconds from which the clock of an activity is shown."""

StyledLine = tuple[str, str]
"""A style of the line editor, and a line that fits the terminal."""


class LiveRegion:
    """The state of it. It takes the place of the progress line (`cru.faces.cli.terminal.progress`) while the chat's screen is there.

    changed: called when it must be drawn anew
    queue: prompts that wait to be sent, in their order
    """

    def __init__(self) -> None:
        self.changed: Callable[[], None] = _nothing
        self.queue: list[str] = []
        self._activity, self._since = "", 0.0
        self._read_tail: Callable[[], str] = str
        self._output, self._call = "", ""
        self._todos = ""

    def follow(self, read_tail: Callable[[], str]) -> None:
        """`read_tail` gives the end of the answer that is not printed yet."""
        self._read_tail = read_tail

    def watch(self, stream: Stream) -> None:
        stream.subscribe(self._take_output, ToolOutput)
        stream.subscribe(lambda _item: self.changed(), StatusChanged)

    def show_todos(self, summary: str) -> None:
        """What of the model's todo list stands there while it works; "" is nothing."""
        self._todos = summary
        self.changed()

    def _take_output(self, item: Published[ToolOutput]) -> None:
        piece = item.payload
        before = self._output if piece.call_id == self._call else ""
        self._call, self._output = piece.call_id, (before + piece.text)[-KEPT:]
        self.changed()

    def show(self, activity: str) -> None:
        """What is going on; "" is nothing."""
        if activity != self._activity:
            self._activity, self._since = activity, time.monotonic()
            self._output = self._call = ""
            self.changed()

    def leave(self) -> None:
        """Somebody else writes on the terminal: the screen has gone for that time already."""

    def clear(self) -> None:
        """Something is about to be printed: that goes above."""

    @property
    def is_busy(self) -> bool:
        """Whether its clock runs."""
        return bool(self._activity)

    def lines(self, columns: int, rows: int) -> list[StyledLine]:
        """The lines, of at most that many columns; together they leave room for the input."""
        room = max(rows - 8, 1)
        tail = [("", line) for line in wrap_end(self._read_tail(), columns, min(TAIL_ROWS, room), rows_at_words)]
        output = wrap_end(self._output, columns - 4, min(OUTPUT_ROWS, max(room - len(tail), 0)))
        return [
            *tail,
            *(("class:live.output", f"  | {line}") for line in output),
            *self._activity_lines(columns),
            *self._queue_lines(columns),
        ]

    def _activity_lines(self, columns: int) -> Iterator[StyledLine]:
        if self._activity:
            if self._todos:
                yield "class:live.todos", fit(f"  {self._todos}", columns)
            seconds = time.monotonic() - self._since
            clock = f" {_clock(seconds)}" if seconds >= PATIENCE else ""
            yield "class:live.activity", fit(f"{self._activity} …{clock}", columns)

    def _queue_lines(self, columns: int) -> Iterator[StyledLine]:
        for text in self.queue[:QUEUE_ROWS]:
            yield "class:live.queue", fit(f"  next: {one_line(text, columns)}", columns)
        if len(self.queue) > QUEUE_ROWS:
            yield "class:live.queue", f"  and {len(self.queue) - QUEUE_ROWS} more"


def wrap_end(text: str, columns: int, rows: int, rows_in: Callable[[str, int], list[str]] = rows_of) -> list[str]:
    """The last rows of a text on a terminal; blank lines at its end are left out."""
    lines = printable(text).expandtabs(4).rstrip("\n").split("\n")[-rows:] if rows > 0 else []
    shown = [row for line in lines for row in rows_in(line, columns)]
    return shown[-rows:] if "".join(shown).strip() else []


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _nothing() -> None:
    """Nothing draws it yet."""
