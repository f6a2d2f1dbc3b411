"""Calls of a client stay within the project, those of the vault's tools within the vault: whatever the mode and the rules allow, and
whoever was asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cru.core.base.files import is_inside
from cru.core.events.answers import Answer, cancel
from cru.core.events.payloads import ToolBeforeCall

if TYPE_CHECKING:
    from cru.core.events.bus import Bus
    from cru.core.events.stamp import Event, Origin
    from cru.core.tools.protocol import Tool
    from cru.core.turn.parts import Parts

LAST = 1_000_000
"""The priority: whatever other handlers have changed is what is judged."""


class Confinement:
    """A handler that refuses calls of the client with paths outside of where their tool may be, links followed.

    parts: of the session that it guards, set once that is built
    """

    owner, dialect = "cru mcp serve", "python"

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._agents: Mapping[str, Origin] = {}
        self.parts: Parts | None = None

    def register(self, bus: Bus) -> None:
        self._agents = bus.agents
        bus.registry.on(ToolBeforeCall, self._judge, owner=self.owner, where="confinement", priority=LAST)

    def _judge(self, event: Event[ToolBeforeCall]) -> Answer | None:
        call = event.payload
        if call.origin != "model" or not call.valid or self.parts is None:
            return None
        tool = self.parts.tools.find(call.name)
        if tool is None:
            return None
        own = self._root_of(event.stamp.agent_id)
        roots, place = self._place(tool, own)
        for _, path in tool.paths(call.args):
            try:
                real = os.path.realpath(os.path.join(own, os.path.expanduser(path)))
            except ValueError as error:  # a null byte
                return cancel(f"not a path ({error})")
            if not any(is_inside(real, root) for root in roots):
                return cancel(f"{path} is outside of {place}, and this server serves nothing else")
        return None

    def _root_of(self, agent: str) -> str:
        """Where an agent works: a sub-agent perhaps in a copy of the project, whose links may lead elsewhere."""
        origin = self._agents.get(agent)
        return os.path.realpath(origin.root) if origin is not None and origin.root else self._root

    def _place(self, tool: Tool, own: str) -> tuple[tuple[str, ...], str]:
        """Where a tool may be, and what that is called: one of a feature says it itself, a plugin's cannot."""
        folder, name = getattr(tool, "confined_to", ("", ""))
        return ((os.path.realpath(folder),), name) if folder else ((own, self._root), "the project")
