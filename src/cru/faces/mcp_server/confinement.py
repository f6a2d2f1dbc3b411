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
        roots, place = self._place(tool, self.parts, own)
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

    def _place(self, tool: Tool, parts: Parts, own: str) -> tuple[tuple[str, ...], str]:
        """Where a tool may be, and what that is called."""
        from cru.features.vault.live import live_vault

        vault = live_vault(parts)
        if vault is not None and is_vault_tool(tool):
            return (os.path.realpath(vault.root),), "the vault"
        return (own, self._root), "the project"


def is_vault_tool(tool: Tool) -> bool:
    """Whether it is one of cru's own over the vault, not a plugin's of such a name."""
    from cru.features.vault.tools import VaultTool

    return isinstance(tool, VaultTool)
