"""With -v: which handlers were asked, and what they answered, as it happens."""

from __future__ import annotations

from collections.abc import Callable

from cru.core.events.journal import LOOKS_ON, JournalLine, JournalSink
from cru.faces.cli.console import one_line
from cru.faces.cli.trace.moments import describe_handlers

OWN = ("cru", "hooks")
"""Owners of handlers that nobody but cru brought."""


class TellingJournal:
    """Tells of each dispatch before it is written down."""

    def __init__(self, sink: JournalSink, say: Callable[[str], None]) -> None:
        self._sink, self._say = sink, say

    def write(self, line: JournalLine) -> None:
        for heard, text in describe_handlers(line):
            if heard.owner not in OWN and not heard.skipped and not heard.where.endswith(LOOKS_ON):
                self._say(f"[{one_line(text)}]")
        self._sink.write(line)
