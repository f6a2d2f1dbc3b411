"""What a terminal shows beside the answer: one line of progress on stderr, and what plugins say about themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from cru.core.base.values.interruptions import Delayed
from cru.core.base.values.messages import CallPart
from cru.core.base.values.oil import bar
from cru.core.events.payloads import AgentThinking
from cru.core.events.stream import StatusChanged
from cru.faces.cli.console import ERASE_LINE, cut_to_columns, one_line, takes_escapes, takes_styles, write_error

BAR = 10
"""Columns of a bar."""
MARKS = {"warn": "! ", "error": "!! "}


class PluginStatuses:
    """What plugins say about themselves, the latest of each (`cru.set_status`, `cru.statusline`), in the order in which they came
    first. Each plugin has its own keys; those of the status line belong to all."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}

    def take(self, status: StatusChanged) -> str:
        """Keep it, or let it go if its text is empty; as it is told in a line of its own."""
        key = ("" if status.place == "statusline" else status.owner, status.key)
        if not status.text:
            self._texts.pop(key, None)
            return ""
        text = MARKS.get(status.level, "") + one_line(status.text)
        if status.progress is None:
            self._texts[key] = text
            return text
        self._texts[key] = f"{text} {bar(status.progress, BAR)} {status.progress:.0%}"
        return f"{text} {status.progress:.0%}"

    def text(self) -> str:
        """All of them on one line."""
        return " · ".join(self._texts.values())


def watch_requests(
    on: Callable[[type[Any], Callable[[Any], None]], None],
    report: Callable[[str], None],
    hides_tools: Callable[[], bool],
) -> None:
    """Report what the running request does besides answering.

    on: subscribes a reader to a type of the stream
    hides_tools: whether the names of tools are not shown
    """
    on(AgentThinking, lambda _thought: report("thinking"))
    on(CallPart, lambda call: report("working" if hides_tools() else f"writing a call of {one_line(call.name, 40)}"))
    on(Delayed, lambda delay: report(_describe_delay(delay)))


def _describe_delay(delay: Delayed) -> str:
    if not delay.until:
        return "waiting for the model"
    why = "rate limited" if delay.is_rate_limited else "no reply"
    return f"{why}, next try at {time.strftime('%H:%M:%S', time.localtime(delay.until))}"


class ProgressLine:
    """One line on stderr that goes away again."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, text: str) -> None:
        """Replace it; "" is no line."""
        if not text:
            self.clear()
            return
        if not takes_escapes(2):
            return  # a line that cannot be erased would stay among the output
        away = ERASE_LINE if self._shown else ""
        self._shown = True
        text = _fitting(text)
        write_error(f"{away}\x1b[2m{text} …\x1b[0m" if takes_styles(2) else f"{away}{text} …")

    def leave(self) -> None:
        """What stands there now is somebody else's."""
        self._shown = False

    def clear(self) -> None:
        if self._shown:
            write_error(ERASE_LINE)
            self._shown = False


def _fitting(text: str) -> str:
    """At most one row of the terminal: only one can be taken away again."""
    try:
        columns = os.get_terminal_size(2).columns or 80
    except OSError:
        columns = 80
    if len(text) * 2 + 3 <= columns:
        return text
    return cut_to_columns(text, columns - 3)
