"""What plugins say about themselves, the latest of each (`cru.set_status`, `cru.statusline`). Loaded with the first."""

from __future__ import annotations

from cru.events.stream import StatusChanged
from cru.faces.cli.console import one_line

MARKS = {"warn": "! ", "error": "!! "}


class Statuses:
    """In the order in which they came first. Each plugin has its own keys; those of the status line belong to all."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], str] = {}

    def take(self, status: StatusChanged) -> str:
        """Keep it, or let it go if its text is empty; as it is shown."""
        key = ("" if status.place == "statusline" else status.owner, status.key)
        if not status.text:
            self._said.pop(key, None)
            return ""
        part = "" if status.progress is None else f" {status.progress:.0%}"
        self._said[key] = said = MARKS.get(status.level, "") + one_line(status.text) + part
        return said

    def text(self) -> str:
        """All of them on one line."""
        return " · ".join(self._said.values())
