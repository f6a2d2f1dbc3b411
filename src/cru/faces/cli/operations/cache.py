"""`--clear-cache` and its like: the outputs of tools that were too long for the conversation (cru.core.tools.output)."""

from __future__ import annotations

from cru.core.base.values.errors import CruError
from cru.core.conversations.store import FileContext
from cru.core.tools import output
from cru.faces.cli.console import say
from cru.faces.cli.operations.flag_run import FlagRun
from cru.faces.cli.run_options import start_of


def clear_current(run: FlagRun) -> None:
    run.say(_clear(run.store(), "cru --clear-cache"))


def clear_other(run: FlagRun, name: str) -> None:
    run.show(_clear(run.store(name), "cru --clear-cache-for"))


def _clear(store: FileContext, command: str) -> str:
    with store.lock(command):
        return f"{store.name}: {_outputs(output.clear_outputs(store.folder))} removed"


def clean_all(run: FlagRun) -> None:
    """Each context by its own settings; one that cannot be cleaned does not keep the others waiting."""
    from cru.core.compose import load_settings
    from cru.core.tools.protocol import ToolSettings

    total = 0
    for name in run.home.names():
        if not run.home.exists(name):
            continue
        try:
            days = load_settings(start_of(run.parsed, name))[0].of(ToolSettings).tool_cache_max_age_days
            store = run.store(name)
            total += output.clean_outputs(store.folder, days, store.visible)
        except (CruError, OSError) as error:
            run.code = 1
            say(f"cru: {name} is not cleaned: {error}")
    run.show(f"{_outputs(total)} removed")


def _outputs(count: int) -> str:
    return "1 saved output" if count == 1 else f"{count} saved outputs"
