"""How other people's code gets in. Here: the settings of plugins, where they are looked for,
`[plugins] watch`, and `[plugins.NAME]`, free tables but for `enabled` and `required`."""

import os
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct


class LuaSettings(Struct, frozen=True):
    """`[lua]`.

    fennel: path of the compiler for Fennel
    """

    fennel: str = ""

    def __post_init__(self) -> None:
        if self.fennel and not os.path.isabs(os.path.expanduser(self.fennel)):
            raise ValueError(f"`{self.fennel}` must be a full path, or begin with ~")


DISCIPLINES = {
    "todos": "todo-enforcer", "ralph": "ralph-loop", "plan": "plan-mode", "deliver": "deliver", "verify": "",
}  # fmt: skip
"""Name of a discipline → the plugin that comes with cru; "": it is no plugin, and has a table of its own."""


class DisciplineSettings(Struct, frozen=True):
    """`[discipline]`. use: names of DISCIPLINES"""

    use: tuple[Literal["todos", "ralph", "plan", "deliver", "verify"], ...] = ()


class PluginSettings(Struct, frozen=True):
    """`discipline` turns plugins on, unless their own tables say otherwise."""

    plugins: dict[str, Any] = {}
    runtimepath: tuple[str, ...] = ()
    lua: LuaSettings = LuaSettings()
    discipline: DisciplineSettings = DisciplineSettings()

    def __post_init__(self) -> None:
        for name in filter(None, map(DISCIPLINES.get, self.discipline.use)):
            self.plugins[name] = {"enabled": True, **self.plugins.get(name, {})}
        for folder in self.runtimepath:
            if not os.path.isabs(os.path.expanduser(folder)):
                raise ValueError(f"`{folder}` must be a full path, or begin with ~")


# Lists of folders with plugins, with `:` between; searched before all others.
PATH_VARIABLES = ("CRU_PLUGIN_PATH", "CRUCIBLE_PLUGIN_PATH")

# What `[plugins]` may hold; "*" is any other name.
PLUGIN_KEYS: dict[str, Any] = {
    "watch": bool,
    "setup_timeout": Annotated[float, Meta(gt=0)],
    "*": {"enabled": bool, "required": bool, "*": Any},
}
OWN_KEYS = ("enabled", "required")
"""What of `[plugins.NAME]` is cru's; the rest is the plugin's configuration."""

DOCS: dict[str, str] = {
    "plugins": "`[plugins.NAME]`: what the plugin NAME reads as its configuration; `enabled = false` leaves it out, `enabled = true` "
    "turns on one that comes with cru; `required = true`: without it no prompt is run (exit 3); "
    "for programs also `era`, `timeout`, `hook_timeout` and `on_error` "
    "([executables](executables.md#settings)). `[plugins] watch = true`: changed plugins are loaded anew before the next prompt; "
    "`setup_timeout = 10`: the seconds in which a plugin must be loaded",
    "discipline": "which [disciplines](bundled-plugins.md) hold",
    "discipline.use": "`todos` (todo-enforcer), `ralph` (ralph-loop), `plan` (plan-mode), `deliver`, and `verify`, which needs "
    "`[verify] command`. `--discipline NAME` for one run, `/discipline NAME` for one chat",
    "lua": "settings of plugins in Lua",
    "lua.fennel": "path of the `fennel.lua` that compiles [plugins in Fennel](extensions.md#fennel); default: `fennel.lua` in cru's "
    "home folder, then among the system's modules of Lua",
    "runtimepath": "folders whose `plugins/` is searched too, after that of the home folder",
}
