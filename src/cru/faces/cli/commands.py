"""The management commands: a table of names, what they do, and the module that is loaded when one is used."""

from __future__ import annotations


class Command:
    """A module of this folder with a function `command(parsed, words) -> exit status`."""

    def __init__(self, module: str, help: str) -> None:
        self.module, self.help = module, help


COMMANDS: dict[str, Command] = {
    "trace": Command("trace", "what happened in a turn; what was sent, and what would be sent"),
    "models": Command("models", "which models can be used; fetch the embedded one"),
    "trust": Command("trust", "trust this project's .cru/config.toml as it is now"),
    "hooks": Command("hooks", "command hooks: what there is, what may run, and why something did or did not"),
    "plugin": Command("plugin", "list plugins, make a new one, run its tests and its health checks"),
    "lua": Command("lua", "evaluate Lua with the whole `cru` namespace"),
    "fsm": Command("fsm", "the workflows of plugins: draw them, see where they stand"),
}
