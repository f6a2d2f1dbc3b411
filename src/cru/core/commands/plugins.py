"""`/plugin`: the plugins of this session, while it runs."""

from __future__ import annotations

from cru.core.base.config.closest import did_you_mean
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.plugins import DISCIPLINES
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


async def discipline(context: CommandContext, words: str) -> CommandResult:
    """Show the disciplines, or turn one on or off for this session. Raises BadCommand, and what `plugin` raises."""
    name, _, switch = words.partition(" ")
    extensions = context.extensions
    if not name:
        return CommandResult("\n".join(_describe_discipline(extensions, name) for name in DISCIPLINES))
    if name not in DISCIPLINES or switch not in ("", "on", "off"):
        hint = did_you_mean(name, DISCIPLINES) or f"one of {', '.join(DISCIPLINES)}, and `off`"
        raise BadCommand(f"/discipline does not know `{words}`", hint)
    if not DISCIPLINES[name]:
        raise BadCommand(f"`{name}` is set in the configuration", f"set `[{name}] command` in config.toml")
    if extensions is None:
        raise BadCommand("no plugins are loaded in this session", f"start it with `cru --discipline {name}`")
    await (extensions.disable if switch == "off" else extensions.enable)(DISCIPLINES[name])
    return CommandResult(_describe_discipline(extensions, name))


def _describe_discipline(extensions: Extensions | None, name: str) -> str:
    plugin = DISCIPLINES[name]
    if not plugin:
        return f"{name}: [{name}] command in config.toml"
    is_on = extensions is not None and any(loaded.name == plugin and loaded.is_active for loaded in extensions.plugins)
    return f"{name}: {'on' if is_on else 'off'} ({plugin})"


async def _reload(extensions: Extensions, names: list[str]) -> str:
    if names:
        await extensions.reload(names[0])
        return f"the plugin {names[0]} is loaded anew"
    active = await extensions.reload_all()
    return f"all plugins are loaded anew; active: {', '.join(active) or 'none'}"
