"""The last question of a first run: whether commands of the model are confined (docs/decisions/0100)."""

from __future__ import annotations

from cru.app.sandbox import bwrap_env
from cru.app.start import Start
from cru.config.edit import set_value
from cru.faces.cli.dialogs.asker import TerminalAsker
from cru.faces.cli.setup.dialog import SetupDialog
from cru.sandbox import SandboxSettings
from cru.sandbox.detect import detect
from cru.values.errors import CruError

TITLE = "Shall what the model runs be confined to the project?"
OPTIONS = (
    ("yes", "commands change the project and a /tmp of their own, see no keys and tokens, and ask to run outside; the network stays open"),
    ("no", "commands that are allowed may do all that you may"),
)  # fmt: skip
CONFINED = SandboxSettings(mode="auto", network=True)


async def ask_to_confine(start: Start, asker: TerminalAsker) -> SandboxSettings | None:
    """What a person has chosen, which is kept; None: nothing confines here, not now, or the terminal has gone."""
    if not (await detect(bwrap_env(start))).backend:
        return None

    async def ask(fd: int) -> SandboxSettings | None:
        dialog = SetupDialog(fd)
        at = await dialog.choose(TITLE, [name for name, _ in OPTIONS], [about for _, about in OPTIONS])
        return None if at is None else _keep(start, dialog, CONFINED if at == 0 else SandboxSettings(mode="off"))

    try:
        return await asker.converse(ask)
    except OSError:
        return None


def _keep(start: Start, dialog: SetupDialog, chosen: SandboxSettings) -> SandboxSettings:
    path = start.home / "config.toml"
    try:
        set_value(path, "sandbox.mode", chosen.mode)
        if chosen.network:
            set_value(path, "sandbox.network", True)
    except CruError as error:
        dialog.complain(error)
    else:
        now = "commands are confined from now on, programs of projects from the next start of cru"
        dialog.say(f"  {'commands are not confined' if chosen.mode == 'off' else now} ([sandbox] in {path})")
    return chosen
