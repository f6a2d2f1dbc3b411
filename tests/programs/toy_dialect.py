"""The proof of the design: a foreign vocabulary in one file, on public names of cru.core.events alone.

# one rule a line: VERB EVENT [PATTERN]: TEXT
deny tool:before_call bash*: no shell today
halt turn:complete error: give up
ask tool:before_call edit: look at this first
allow permission:requested read: reading is fine
context message:received: answer in French
inject turn:complete: go on
answer tool:before_call fetch: from the cache
rewrite tool:before_call args {"command": "true"}
"""

from __future__ import annotations

import json
from collections.abc import Callable

from cru.core.events.answers import Answer, add_context, allow, ask, cancel, halt, handled, inject, transform
from cru.core.events.bus import Bus
from cru.core.events.stamp import Event

VERBS: dict[str, Callable[[str], Answer]] = {
    "deny": cancel,
    "halt": halt,
    "ask": ask,
    "allow": allow,
    "context": add_context,
    "inject": inject,
    "answer": handled,
}


class ToyError(Exception):
    """A line that is no rule; names file and line."""


class Toy:
    """An extension: its rules are the lines of a text."""

    dialect = "toy"

    def __init__(self, owner: str, text: str) -> None:
        self.owner = owner
        self._text = text

    def register(self, bus: Bus) -> None:
        for number, line in enumerate(self._text.splitlines(), 1):
            where = f"{self.owner}.toy:{number}"
            if not line.strip() or line.startswith("#"):
                continue
            event, pattern, answer = parse(line, where)
            bus.registry.on(event, always(answer), owner=self.owner, where=where, pattern=pattern)


def parse(line: str, where: str) -> tuple[str, str, Answer]:
    """(event, pattern, answer) of one rule."""
    verb, _, rest = line.strip().partition(" ")
    try:
        if verb == "rewrite":
            event, field, value = rest.split(" ", 2)
            return event, "", transform(**{field: json.loads(value)})
        head, _, text = rest.partition(": ")
        event, _, pattern = head.partition(" ")
        return event, pattern, VERBS[verb](text)
    except (KeyError, ValueError) as error:
        raise ToyError(f"{where}: not a rule: {line}") from error


def always(answer: Answer) -> Callable[[Event], Answer]:
    return lambda event: answer
