"""What code of plugins prints, from the time on when there is some in this process: it goes to standard error, also what their children
and `os.write(1, ...)` write. Standard output is the answer's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import FileIO, TextIOWrapper

from cru.faces.cli.console import StandardOutput


class PrintedText(TextIOWrapper):
    """`sys.stdout` as plugins see it."""

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__(FileIO(1, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
        self._tell: Callable[[], None] | None = tell

    def write(self, text: str) -> int:
        if self._tell is not None:
            tell, self._tell = self._tell, None
            tell()
        return super().write(text)


def divert(tell: Callable[[], None]) -> None:
    """Once in a process; see session_run.divert_prints."""
    if StandardOutput.stream is not None:
        return
    sys.stdout.flush()
    StandardOutput.fd = os.dup(1)
    StandardOutput.stream = os.fdopen(StandardOutput.fd, "w", 1, "utf-8", "backslashreplace", closefd=False)
    os.dup2(2, 1)
    sys.stdout = PrintedText(tell)
