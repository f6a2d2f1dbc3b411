"""Flags that show what contexts hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.faces.cli.console import say
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.run_options import start_of

if TYPE_CHECKING:
    from cru.config.merge import Settings
    from cru.contexts.store import FileContext
    from cru.faces.cli.operations import Operations


def list_current(do: Operations) -> None:
    from cru.faces.cli.operations.listing import about

    do.show(about(do.home, do.store()))


def list_all(do: Operations) -> None:
    from cru.faces.cli.operations.listing import contexts

    do.show(contexts(do.home, do.name))


def show_log(do: Operations, count: str) -> None:
    _show(do, do.store(), count)


def show_log_other(do: Operations, name: str, count: str) -> None:
    _show(do, do.store(name), count)


def _show(do: Operations, store: FileContext, count: str) -> None:
    """All entries (0) are those of the archive too; where it hides what was asked for, that is said."""
    from cru.faces.cli.operations.listing import log, spoken

    try:
        number = int(count)
    except ValueError as error:
        raise UsageProblem(
            f"{count} is not a number", "-g 5 shows the last five entries, -g -5 the first, -g 0 all"
        ) from error
    verbose = do.parsed.has("verbose")
    problems = store.refresh()
    entries = list(store.everything()) if number == 0 else store.entries()
    for problem in (*problems, *store.refresh()):
        say(f"cru: {store.folder / problem.file}:{problem.line}: {problem.message}")
    for line in log(entries, number, verbose):
        do.show(line)
    here = len(spoken(entries, verbose))
    if here < abs(number):
        archived = len(spoken(list(store.everything()), verbose)) - here
        if archived:
            what = "1 older entry is" if archived == 1 else f"{archived} older entries are"
            say(f"cru: {what} in the archive: {_all_of(do, store)}")


def _all_of(do: Operations, store: FileContext) -> str:
    """The command that shows everything of a context."""
    return "cru -g 0" if store.name == do.home.current else f"cru -G {store.name} 0"


def inspect_current(do: Operations, thing: str) -> None:
    _inspect(do, do.store(), thing)


def inspect_other(do: Operations, name: str, thing: str) -> None:
    _inspect(do, do.store(name), thing)


def _inspect(do: Operations, store: FileContext, thing: str) -> None:
    from cru.faces.cli.operations.listing import inspect

    do.show(inspect(do.home, store, thing, lambda: _settings(do, store.name)))


def _settings(do: Operations, context: str) -> Settings:
    """What holds for a context; what is wrong with its files is told."""
    from cru.app import load_settings

    settings, _, notices = load_settings(start_of(do.parsed, context))
    for notice in notices:
        say(f"cru: {notice}")
    return settings
