"""Opens the chat again in another conversation: `/new`, `/resume NAME`, `/rename NAME`."""

from __future__ import annotations

from cru.core.base.values.errors import CruError
from cru.faces.cli.console import complain
from cru.faces.cli.flags import Parsed, find
from cru.faces.cli.operations.flag_run import FlagRun
from cru.faces.cli.run_options import context_name, open_home, start_of
from cru.faces.cli.session_run import announce


def reopened(parsed: Parsed, name: str, flag: str, value: str) -> str:
    """Carry out the flag that a command of the chat stands for. Return the conversation of the next chat: the same one if that fails."""
    where = [(row, values) for row, values in parsed.flags if row.name in ("home", "project-root", "verbose")]
    again = Parsed((*where, (find(flag)[0], (value,))), ())
    try:
        home = open_home(again)
        run = FlagRun(again, home, name if flag == "-r" else context_name(again, home))
        run.carry_out(again.operations())
    except CruError as error:
        complain(error.message, error.hint)
        return name
    if run.events:
        announce(start_of(parsed, run.name), parsed, tuple(run.events))
    return run.name
