"""The model's todo list in a line."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from cru.core.events.payloads import ContextSwitched, TodoChanged
from cru.core.events.stream import Stream
from cru.faces.cli.console import one_line

TODO = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+\[([ xX~/-])\]\s*(.*)")
NEXT = 60
"""Characters that are shown of what is next."""


class Todo(Struct, frozen=True):
    """An entry of a list as Markdown has it: `- [x] text`."""

    text: str
    is_done: bool


def parse_todo(line: str) -> Todo | None:
    """None: the line is none."""
    match = TODO.match(line)
    return None if match is None else Todo(match[2].strip(), match[1] in "xX")


def summarize_todos(text: str) -> str:
    """How many of a list are done, and which is next; "" if there is none, or all are done."""
    todos = [todo for line in text.splitlines() if (todo := parse_todo(line)) is not None]
    rest = [todo.text for todo in todos if not todo.is_done]
    if not rest:
        return ""
    return f"todos: {len(todos) - len(rest)} of {len(todos)} done, next: {one_line(rest[0], NEXT)}"


def show_todos(stream: Stream, show: Callable[[str], None]) -> None:
    """Let `show` have the summary of the list whenever it changes."""
    stream.subscribe(lambda item: show(summarize_todos(item.payload.text)), TodoChanged)
    stream.subscribe(lambda _: show(""), ContextSwitched)
