"""A small terminal: bytes in, the text that a person would see out. Knows what line editors use, and no colours."""

from __future__ import annotations

import re

# One escape sequence, one control character, or a run of plain text.
TOKEN = re.compile(
    r"\x1b\[([?>=]?)([\d;]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[^\[\]()]|[\x00-\x1a\x1c-\x1f]|[^\x00-\x1f]+"
)
UNFINISHED = re.compile(r"\x1b(?:\[[?>=]?[\d;]*|\][^\x07\x1b]*\x1b?|[()])?\Z")


class Screen:
    """`feed` what the program printed, then look at `lines()`; `answers` collects what a terminal would send back;
    `editor_at` is where in `plain` a line editor first drew; `marks_pastes`: the program wants to know what is pasted."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self.rows, self.columns = rows, columns
        self.grid = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.plain = ""
        self.answers = ""
        self.editor_at: int | None = None
        self.marks_pastes = False
        self._rest = ""

    def lines(self) -> list[str]:
        """The visible lines without trailing spaces; empty lines at the end are left out."""
        text = ["".join(row).rstrip() for row in self.grid]
        while text and not text[-1]:
            text.pop()
        return text

    def feed(self, text: str) -> None:
        """Print text; a sequence that is cut at the end waits for its other half. `plain` grows by the text without sequences."""
        text = self._rest + text
        cut = UNFINISHED.search(text)
        self._rest = text[cut.start() :] if cut else ""
        for match in TOKEN.finditer(text[: cut.start()] if cut else text):
            if match[3]:
                self._sequence(match[1], [int(n) if n else 0 for n in match[2].split(";")], match[3])
            elif not match[0].startswith("\x1b"):
                self._print(match[0])

    def _print(self, text: str) -> None:
        for char in text:
            if char == "\r":
                self.column = 0
            elif char == "\n":
                self._down()
            elif char == "\b":
                self.column = max(self.column - 1, 0)
            elif char >= " ":
                self._put(char)
        self.plain += "".join(c for c in text if c >= " " or c == "\n")

    def _put(self, char: str) -> None:
        if self.column >= self.columns:
            self.column = 0
            self._down()
        self.grid[self.row][self.column] = char
        self.column += 1

    def _down(self) -> None:
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.grid = [*self.grid[1:], [" "] * self.columns]

    def _sequence(self, mark: str, numbers: list[int], kind: str) -> None:
        if mark:
            if mark == "?":
                self._mode(numbers[0], kind)
            return
        n = max(numbers[0], 1)
        match kind:
            case "A" | "B":
                self.row = min(max(self.row + (n if kind == "B" else -n), 0), self.rows - 1)
            case "C" | "D":
                self.plain += " " * n if kind == "C" else ""  # line editors step over blanks instead of printing them
                self.column = min(max(self.column + (n if kind == "C" else -n), 0), self.columns - 1)
            case "G":
                self.column = min(n, self.columns) - 1
            case "H" | "f":
                column = numbers[1] if len(numbers) > 1 else 1
                self.row, self.column = min(n, self.rows) - 1, min(max(column, 1), self.columns) - 1
            case "J" | "K":
                self._erase(kind, numbers[0])
                if kind == "J" and not self.plain.endswith("\n"):  # what comes is no part of the line that stood there
                    self.plain += "\n"
            case "n" if numbers[0] == 6:
                self.answers += f"\x1b[{self.row + 1};{self.column + 1}R"

    def _mode(self, number: int, kind: str) -> None:
        if (number, kind) == (7, "l") and self.editor_at is None:
            self.editor_at = len(self.plain)  # it does not let the terminal break lines
        if number == 2004:
            self.marks_pastes = kind == "h"

    def _erase(self, kind: str, how: int) -> None:
        """0: from the cursor on, 1: up to it, 2 and 3: all; K within the line, J on the screen."""
        here = self.row * self.columns + min(self.column, self.columns - 1)
        first, last = {0: (here, self.rows * self.columns), 1: (0, here + 1)}.get(how, (0, self.rows * self.columns))
        if kind == "K":
            line = self.row * self.columns
            first, last = max(first, line), min(last, line + self.columns)
        for at in range(first, last):
            self.grid[at // self.columns][at % self.columns] = " "
