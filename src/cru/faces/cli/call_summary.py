"""A call, or a value, in a few words on one line of a terminal, and the result of a call that is a view, drawn below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from cru.core.base.values.visible import fold_blanks, visible
from cru.core.events.payloads import ToolCompleted
from cru.core.events.stream import ToolDrew
from cru.faces.cli.console import one_line

if TYPE_CHECKING:
    from cru.core.events.payloads import ToolFailed
    from cru.core.events.stream import AgentCallFailed

COLUMNS = 60
LONGEST_NAME, LONGEST_ERROR = 100, 1000


def summarize_arguments(args: Mapping[str, object]) -> str:
    """Those that say something: texts and numbers as they are, a switch that is on by its name; nothing of what is off or empty."""
    return _shorten(" ".join(_words(args)))


def summarize_value(value: object) -> str:
    return _shorten(value if isinstance(value, str) else _to_json(value))


def _words(args: Mapping[str, object]) -> Iterator[str]:
    for name, value in args.items():
        if value is True:
            yield name
        elif isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            yield ",".join(value)
        elif value not in (None, False, {}):
            yield _to_json(value)


def _to_json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=repr).decode("utf-8", "replace")


def _shorten(text: str) -> str:
    return one_line(visible(fold_blanks(text)), COLUMNS)


def describe_failure(call: ToolFailed | AgentCallFailed) -> str:
    """Which call failed, and how, in one line."""
    error = call.error[:LONGEST_ERROR].strip().partition("\n")[0]
    text = f"{one_line(call.name, LONGEST_NAME)} {call.which}: {one_line(error, LONGEST_ERROR)}"
    if call.name != "bash":
        return text
    from cru.core.base.process.confined import IN_SANDBOX, PERSONS_WAY

    return f"{text}; the sandbox may be why: {PERSONS_WAY}" if f"[{IN_SANDBOX}" in call.error else text


MARK = "  "


class ToolViews:
    """The results of tools that are views, in one face. say: shows a drawn text"""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._drawn: dict[str, ToolDrew] = {}

    def take(self, drew: ToolDrew) -> None:
        self._drawn[drew.call_id] = drew

    def show(self, call: ToolCompleted) -> None:
        """Show the view, unless a handler has replaced the result."""
        drew = self._drawn.pop(call.call_id, None)
        if drew is not None and call.result == drew.text:
            from cru.faces.cli.oil.drawing import draw

            self._say(draw(drew.view, 2, MARK))
