"""What was typed in the chat before: one file for all projects, each of which sees its own, and what is of none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from prompt_toolkit.history import History, InMemoryHistory

from cru.core.base.files.regular import APPENDING, append_lines, open_regular, read_range
from cru.core.base.values.visible import visible

READ, KEPT = 1 << 20, 8 << 20
"""Bytes at the end of the file that are read; and from which on it is put aside as `chat_history.1`, in the place of what that was."""

KEY_COMMAND = "/login"
"""Nothing behind it is kept: it may be a key, which the command refuses there, or an address with one."""


class ProjectHistory(History):
    """The prompts of one project. An entry is a line `# TIME PROJECT`, and its lines behind a plus; what has no project is everybody's.
    What cannot be written is kept in memory, as all of it is: no reason to refuse what was typed."""

    def __init__(self, path: Path, project: Path, is_kept: bool = True) -> None:
        super().__init__()
        self._path, self._project, self._is_kept = path, visible(str(project)), is_kept

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        entries: list[str] = []
        for path in (_older(self._path), self._path):
            entries += self._entries(_read_end(path))
        return reversed(entries)

    def _entries(self, text: str) -> Iterator[str]:
        for entry in text.split("\n# ")[1:]:
            head, *lines = entry.split("\n")
            project = " ".join(head.split(" ")[2:])
            typed = "\n".join(line[1:] for line in lines if line.startswith("+"))
            if typed and project in ("", self._project):
                yield typed

    def store_string(self, string: str) -> None:
        if not self._is_kept:
            return
        if string.split(maxsplit=1)[:1] == [KEY_COMMAND]:
            string = KEY_COMMAND
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        data = f"\n# {datetime.now():%Y-%m-%d %H:%M:%S} {self._project}\n{lines}".encode("utf-8", "replace")
        with suppress(OSError):
            append_lines(self._path, data)


def open_history(path: Path, project: Path, is_kept: bool = True) -> History:
    """Private, and only kept in memory if the file cannot be written. is_kept: False: it is only read."""
    if not is_kept:
        return ProjectHistory(path, project, is_kept)
    try:
        file = open_regular(path, APPENDING)
        size = os.fstat(file).st_size
        os.close(file)
        if size > KEPT:
            os.replace(path, _older(path))
    except OSError:
        return InMemoryHistory()
    return ProjectHistory(path, project)


def _older(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


def _read_end(path: Path) -> str:
    """The last of a file; "" if there is none. It begins with the end of a line."""
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            data = read_range(file.fileno(), max(size - READ, 0), size)
    except OSError:
        return ""
    return "\n" + data.decode("utf-8", "replace")
