"""The management commands: a table of names, what they do, and the module that is loaded when one is used."""

from __future__ import annotations

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from collections.abc import Sequence


class ManagementCommand:
    """A management command.

    module: what is loaded; it has a function `command(parsed, words) -> exit status`
    help: what it does, one line
    verbs: the words that may follow its name
    """

    def __init__(self, module: str, help: str, verbs: str = "") -> None:
        self.module, self.help, self.verbs = module, help, tuple(verbs.split())


COMMANDS: dict[str, ManagementCommand] = {
    "trace": ManagementCommand(
        "cru.faces.cli.trace.command", "what happened in a turn; what was sent, and what would be sent"
    ),
    "models": ManagementCommand("cru.faces.cli.models", "which models can be used; fetch the embedded one", "pull"),
    "trust": ManagementCommand("cru.faces.cli.trust", "trust this project's .cru/config.toml as it is now"),
    "hooks": ManagementCommand(
        "cru.faces.cli.hooks.command",
        "command hooks: what there is, what may run, and why something did or did not",
        "list review enable disable check why log test",
    ),
    "plugin": ManagementCommand(
        "cru.faces.cli.plugin.command",
        "list plugins, make a new one, run its tests and its health checks",
        "list new test health enable disable adopt-chibi",
    ),
    "lua": ManagementCommand("cru.faces.cli.lua", "evaluate Lua with the whole `cru` namespace"),
    "fsm": ManagementCommand(
        "cru.faces.cli.fsm.command",
        "the workflows of plugins: draw them, see where they stand",
        "list status show reset",
    ),
}


def meant(words: Sequence[str]) -> str:
    """The command that the first word nearly is, if one of that command's verbs follows it; "" if it is a prompt."""
    names = [name for name, one in COMMANDS.items() if len(words) > 1 and words[1] in one.verbs]
    if not names:
        return ""
    from cru.config.closest import distance

    return next((name for name in names if distance(words[0].casefold(), name) <= 1), "")
