"""`/plugin`: the plugins of this session, while it runs."""

from __future__ import annotations

from cru.core.base.config.closest import did_you_mean
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.plugins.listing import format_row, plugin_rows
from cru.core.plugins.manager import Extensions
from cru.core.turn.commands import CommandResult

# How many names follow each, at least and at most.
VERBS = {"list": (0, 0), "reload": (0, 1), "enable": (1, 1), "disable": (1, 1)}
HINTS = {"list": "list", "reload": "reload [name]", "enable": "enable name", "disable": "disable name"}
NONE = "there are no plugins; `cru plugin new NAME` makes one, for the next session"


async def plugin(context: CommandContext, words: str) -> CommandResult:
    """Raises BadCommand, UnknownPlugin, PluginInUse, and PluginFailed with the traceback as its hint."""
    verb, *names = words.split() or ["list"]
    if verb not in VERBS:
        raise BadCommand(f"/plugin has no `{verb}`", did_you_mean(verb, VERBS) or f"it has {', '.join(VERBS)}")
    least, most = VERBS[verb]
    if not least <= len(names) <= most:
        raise BadCommand(f"/plugin {verb} does not take {len(names)} names", f"/plugin {HINTS[verb]}")
    extensions = context.extensions
    if extensions is None or not extensions.plugins:
        return CommandResult(NONE)
    if verb == "list":
        return CommandResult("\n".join(line for row in plugin_rows(extensions) for line in format_row(row)))
    if verb == "reload":
        return CommandResult(await _reload(extensions, names))
    (name,) = names
    if verb == "enable":
        await extensions.enable(name)
    else:
        await extensions.disable(name)
    how = "active" if verb == "enable" else "disabled"
    return CommandResult(
        f"the plugin {name} is {how} for this session only; `cru plugin {verb} {name}` does it for every later one"
    )


async def _reload(extensions: Extensions, names: list[str]) -> str:
    if names:
        await extensions.reload(names[0])
        return f"the plugin {names[0]} is loaded anew"
    active = await extensions.reload_all()
    return f"all plugins are loaded anew; active: {', '.join(active) or 'none'}"
