"""`/view`: what plugins have to look at."""

from __future__ import annotations

from cru.core.api.dialogs.port import show_dialog
from cru.core.api.host import HOST
from cru.core.base.config.closest import did_you_mean
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.events.stream import CommandSaid
from cru.core.plugins.views import OpenView, ViewFailed, views_of
from cru.core.turn.commands import CommandResult

NONE = "no plugin has a view; docs/oil.md says how to make one"
COLUMNS, ROWS = 80, 24
YEAR = 365 * 24 * 3600.0
"""A view stays open as long as the person likes."""


async def view(context: CommandContext, words: str) -> CommandResult:
    """Raises BadCommand and ViewFailed."""
    session = context.extensions.session if context.extensions is not None else None
    views = views_of(session).views if session is not None else {}
    name = words.strip()
    if not name or not views:
        lines = [f"{view.name}  {view.description} ({view.host.plugin.name})" for _, view in sorted(views.items())]
        return CommandResult("\n".join(lines) or NONE)
    if name not in views:
        raise BadCommand(
            f"there is no view {name}", did_you_mean(name, views) or f"there are {', '.join(sorted(views))}"
        )
    opened = OpenView(views[name])
    if context.face.draws and context.session.parts.services.face.dialogs is not None:
        return await _open(opened)
    from cru.core.base.values.oil.layout import plain_text

    drawn = await opened.draw(COLUMNS, ROWS)
    context.session.parts.bus.stream.tell(CommandSaid("view", plain_text(drawn), view=drawn))
    return CommandResult()


async def _open(opened: OpenView) -> CommandResult:
    """On the terminal, until it is closed. Raises ViewFailed."""
    token = HOST.set(opened.view.host)
    try:
        reply = await show_dialog("view", opened.view.name, {"view": opened}, YEAR)
    finally:
        HOST.reset(token)
    if reply is not None and reply.get("problem"):
        raise ViewFailed(str(reply["problem"]))
    return CommandResult()
