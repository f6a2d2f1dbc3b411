"""Tool calls that change files: what they change is kept before it is changed, so that it can be taken back (docs/undo.md)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cru.core.guard.shell.readers import only_reads
from cru.core.tools.protocol import Access, Tool, ToolContext, ToolResult
from cru.core.turn.parts import Parts, SessionServices

if TYPE_CHECKING:
    from cru.core.revisions.keeper import ChangeKeeper

Arguments = dict[str, object]


async def settle_commands(services: SessionServices, tool: Tool) -> None:
    """Wait until what earlier commands changed is recorded: else what this call writes would count as theirs."""
    keeper = None if tool.kind == "shell" else services.changes.keeper()
    if keeper is not None:
        await keeper.settle()


async def run_recorded(
    parts: Parts, tool: Tool, args: Arguments, running: ToolContext, paths: tuple[tuple[Access, str], ...]
) -> ToolResult:
    """Run a tool, after `settle_commands`; raises what it raises. Of a command the work tree is looked at, of other tools the files
    that they said they would write are kept."""
    why = _why_unknown(args) if tool.kind == "shell" else ""
    if tool.kind == "shell" and not why and only_reads(tool.subject(args)):
        return await tool.run(args, running)
    keeper = parts.services.changes.keeper()
    if keeper is None:
        return await tool.run(args, running)
    if tool.kind == "shell":
        return await _run_command(parts, keeper, tool, args, running, why)
    if getattr(tool, "keeps_files", False):
        return await tool.run(args, running)
    from cru.core.revisions.records import ChangedBy

    files = [
        os.path.realpath(parts.place.root / os.path.expanduser(path)) for access, path in paths if access == "write"
    ]
    begun = keeper.begin(files, parts.services.changes.origin(parts, ChangedBy.TOOL, tool.spec.name, running.call_id))
    try:
        return await tool.run(args, running)
    finally:
        keeper.end(begun)


async def _run_command(
    parts: Parts, keeper: ChangeKeeper, tool: Tool, args: Arguments, running: ToolContext, why: str
) -> ToolResult:
    """Run a command that may change something; `why` is the reason of `_why_unknown`."""
    own = parts.tool_services.commands.env_of_own_programs(parts.place.root, running.env)
    watcher = keeper.watch_commands(parts.place.root, own.get("PATH", os.defpath))
    if watcher is None:
        return await tool.run(args, running)
    from cru.core.revisions.records import ChangedBy

    changes = parts.services.changes
    origin = changes.origin(parts, ChangedBy.COMMAND, tool.spec.name, running.call_id)
    await watcher.before(origin)
    try:
        return await tool.run(args, running)
    finally:
        watcher.after(origin, tool.subject(args).encode("utf-8", "replace").decode(), why)


def _why_unknown(args: Arguments) -> str:
    """Why what such a call changes cannot be told when it is over."""
    if args.get("input_to"):
        return "typed into a running command"
    return "it went on in the background" if args.get("background") else ""
