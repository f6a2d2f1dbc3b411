"""ClientCalls of a client stay within the project: whatever the mode and the rules allow, and whoever was asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cru.events.answers import Answer, cancel
from cru.events.payloads import ToolBeforeCall

if TYPE_CHECKING:
    from cru.engine.parts import Parts
    from cru.events.bus import Bus
    from cru.events.stamp import Event

LAST = 1_000_000
"""The priority: whatever other handlers have changed is what is judged."""


class Confinement:
    """A handler that refuses calls of the client with paths outside of the project root, links followed.

    parts: of the session that it guards, set once that is built
    """

    owner, dialect = "cru mcp serve", "python"

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self.parts: Parts | None = None

    def register(self, bus: Bus) -> None:
        bus.registry.on(ToolBeforeCall, self._judge, owner=self.owner, where="confinement", priority=LAST)

    def _judge(self, event: Event[ToolBeforeCall]) -> Answer | None:
        call = event.payload
        if call.origin != "model" or not call.valid or self.parts is None:
            return None
        tool = self.parts.tools.find(call.name)
        for _, path in tool.paths(call.args) if tool is not None else ():
            if not self._is_inside(path):
                return cancel(f"{path} is outside of the project, and this server serves nothing else")
        return None

    def _is_inside(self, path: str) -> bool:
        real = os.path.realpath(os.path.join(self._root, os.path.expanduser(path)))
        return real == self._root or real.startswith(os.path.join(self._root, ""))
