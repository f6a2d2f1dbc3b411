"""The last question of a first run: whether commands of the model are confined (docs/decisions/0100)."""

from __future__ import annotations

from pathlib import Path

from cru.config.edit import set_value
from cru.faces.cli.setup.dialog import SetupDialog
from cru.sandbox import SandboxSettings

TITLE = """Shall what the model runs be confined to the project?
Confined commands change the project and a /tmp of their own, see no keys and
tokens, and ask to run outside where they need more. The network stays open.
[sandbox] in config.toml changes it later."""
CHOICES = {"yes": SandboxSettings(mode="auto", network=True), "no": SandboxSettings(mode="off")}
ABOUT = ("what is allowed, or slips through, stays in the project", "commands that are allowed may do all that you may")
CONFINED = "commands are confined from now on, hooks, plugins and MCP servers of projects from the next start on"


async def ask_to_confine(dialog: SetupDialog) -> SandboxSettings | None:
    """None: cancelled."""
    at = await dialog.choose(TITLE, list(CHOICES), ABOUT)
    return None if at is None else [*CHOICES.values()][at]


def keep_confinement(dialog: SetupDialog, path: Path, chosen: SandboxSettings) -> None:
    """Raises ConfigError."""
    set_value(path, "sandbox.mode", chosen.mode)
    if chosen.network:
        set_value(path, "sandbox.network", True)
    dialog.say(f"  {'commands are not confined' if chosen.mode == 'off' else CONFINED} ([sandbox] in {path})")
