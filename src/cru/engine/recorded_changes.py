"""Tool calls that change files: what they change is kept before it is changed, so that it can be taken back (docs/undo.md)."""

from __future__ import annotations

import os

from cru.engine.parts import Parts
from cru.revisions.records import ChangedBy
from cru.tools.protocol import Access, Tool, ToolContext, ToolResult


async def run_recorded(
    parts: Parts, tool: Tool, args: dict[str, object], running: ToolContext, paths: tuple[tuple[Access, str], ...]
) -> ToolResult:
    """Run a tool; raises what it raises. Of tools that keep nothing themselves the files that they said they would write are kept."""
    files = [os.path.realpath(parts.root / os.path.expanduser(path)) for access, path in paths if access == "write"]
    keeper = parts.services.changes.keeper()
    if keeper is None or not files:
        return await tool.run(args, running)
    begun = keeper.begin(files, parts.services.changes.origin(parts, ChangedBy.TOOL, tool.spec.name, running.call_id))
    try:
        return await tool.run(args, running)
    finally:
        keeper.end(begun)
