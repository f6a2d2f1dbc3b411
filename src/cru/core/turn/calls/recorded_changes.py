"""Tool calls that change files: what they change is kept before it is changed, so that it can be taken back (docs/undo.md)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from cru.core.guard.shell.readers import only_reads
from cru.core.tools.protocol import Tool, ToolContext
from cru.core.turn.calls.requested_call import RequestedCall
from cru.core.turn.parts import Parts

if TYPE_CHECKING:
    from cru.core.revisions.commands import CommandWatcher
    from cru.core.revisions.keeper import ChangeKeeper
    from cru.core.revisions.records import ChangeOrigin


async def record_changes(
    parts: Parts, tool: Tool, request: RequestedCall, running: ToolContext
) -> AbstractAsyncContextManager[None]:
    """Return what records the changes of a call that runs inside. For a command the work tree is looked at; for other tools the files
    that they said they would write are kept, once what earlier commands changed is recorded: else it would count as theirs."""
    is_command, changes = tool.kind == "shell", parts.services.changes
    why = _why_unknown(request.args) if is_command else ""
    keeper = None if is_command and not why and only_reads(request.detail) else changes.keeper()
    if keeper is None:
        return nullcontext()
    from cru.core.revisions.records import ChangedBy  # a run whose calls only read loads none of it

    if is_command:
        own = parts.tool_services.commands.env_of_own_programs(parts.place.root, running.env)
        watcher = keeper.watch_commands(parts.place.root, own.get("PATH", os.defpath))
        origin = changes.origin(parts, ChangedBy.COMMAND, tool.spec.name, running.call_id)
        return nullcontext() if watcher is None else _watch(watcher, origin, request.detail, why)
    await keeper.settle()
    if getattr(tool, "keeps_files", False):
        return nullcontext()
    files = [os.path.realpath(parts.place.root / os.path.expanduser(p)) for how, p in request.paths if how == "write"]
    return _keep(keeper, files, changes.origin(parts, ChangedBy.TOOL, tool.spec.name, running.call_id))


@asynccontextmanager
async def _watch(watcher: CommandWatcher, origin: ChangeOrigin, command: str, why: str) -> AsyncIterator[None]:
    """A command that may change something runs inside; `why` is the reason of `_why_unknown`."""
    await watcher.before(origin)
    try:
        yield
    finally:
        watcher.after(origin, command.encode("utf-8", "replace").decode(), why)


@asynccontextmanager
async def _keep(keeper: ChangeKeeper, files: list[str], origin: ChangeOrigin) -> AsyncIterator[None]:
    begun = keeper.begin(files, origin)
    try:
        yield
    finally:
        keeper.end(begun)


def _why_unknown(args: dict[str, object]) -> str:
    """Why what such a call changes cannot be told when it is over."""
    if args.get("input_to"):
        return "typed into a running command"
    return "it went on in the background" if args.get("background") else ""
