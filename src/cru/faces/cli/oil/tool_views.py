"""Results of tools that are views: drawn below the call."""

from __future__ import annotations

from collections.abc import Callable

from cru.core.events.payloads import ToolCompleted
from cru.core.events.stream import ToolDrew

MARK = "  "


class ToolViews:
    """Of one face. say: shows a drawn text"""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._drawn: dict[str, ToolDrew] = {}

    def take(self, drew: ToolDrew) -> None:
        self._drawn[drew.call_id] = drew

    def show(self, call: ToolCompleted) -> None:
        """If no handler has put something else in its place."""
        drew = self._drawn.pop(call.call_id, None)
        if drew is not None and call.result == drew.text:
            from cru.faces.cli.oil.drawing import draw

            self._say(draw(drew.view, 2, MARK))
