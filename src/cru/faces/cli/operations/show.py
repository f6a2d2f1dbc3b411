"""Flags that show what contexts hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from cru.faces.cli.console import say
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.run_options import start_of

if TYPE_CHECKING:
    from cru.core.base.config.layers import Settings
    from cru.core.base.values.messages import Entry
    from cru.core.conversations.entries import LogProblem
    from cru.core.conversations.store import FileContext
    from cru.faces.cli.operations.flag_run import FlagRun


def list_current(run: FlagRun) -> None:
    from cru.faces.cli.operations.listing import render_context

    run.show(render_context(run.home, run.store()))


def list_all(run: FlagRun) -> None:
    from cru.faces.cli.operations.listing import render_contexts

    run.show(render_contexts(run.home, run.name))


def show_log(run: FlagRun, count: str) -> None:
    _show(run, run.store(), count)


def show_log_other(run: FlagRun, name: str, count: str) -> None:
    _show(run, run.store(name), count)


def _show(run: FlagRun, store: FileContext, count: str) -> None:
    """All entries (0) are those of the archive too; where it hides what was asked for, that is said."""
    from cru.core.conversations.reported import report_once
    from cru.faces.cli.operations.listing import readable_kinds, render_log

    try:
        number = int(count)
    except ValueError as error:
        raise UsageProblem(
            f"{count} is not a number", "-g 5 shows the last five entries, -g -5 the first, -g 0 all"
        ) from error
    verbose = run.parsed.has("verbose")
    kinds = readable_kinds(verbose)
    entries, problems = _read(store, number, kinds)
    for problem in report_once(store.folder, problems):
        say(f"cru: {problem.text(store.folder)}")
    for line in render_log(entries, number, verbose):
        run.show(line)
    here = sum(entry.entry_type in kinds for entry in entries)
    if here < abs(number) and _has_older(store, entries, kinds):
        say(f"cru: older entries are in the archive: {_log_command(run, store)}")


def _read(store: FileContext, number: int, kinds: Collection[str]) -> tuple[list[Entry], list[LogProblem]]:
    """The entries among which those are that are to be shown, and what is wrong with the log."""
    if number > 0:
        tail = store.tail(number, kinds)
        return tail.entries, tail.problems
    problems = store.refresh()
    entries = list(store.everything()) if number == 0 else store.logged()
    return entries, [*problems, *store.refresh()]


def _has_older(store: FileContext, entries: Iterable[Entry], kinds: Collection[str]) -> bool:
    """Whether the archive has entries of these kinds that are not among those that an anchor has kept."""
    ids = {entry.id for entry in entries}
    return any(entry.entry_type in kinds and entry.id not in ids for entry in store.archived())


def _log_command(run: FlagRun, store: FileContext) -> str:
    """The command that shows everything of a context."""
    return "cru -g 0" if store.name == run.home.current else f"cru -G {store.name} 0"


def inspect_current(run: FlagRun, thing: str) -> None:
    _inspect(run, run.store(), thing)


def inspect_other(run: FlagRun, name: str, thing: str) -> None:
    _inspect(run, run.store(name), thing)


def _inspect(run: FlagRun, store: FileContext, thing: str) -> None:
    from cru.faces.cli.operations.listing import inspect_context

    run.show(inspect_context(run.home, store, thing, lambda: _settings(run, store.name)))


def _settings(run: FlagRun, context: str) -> Settings:
    """What holds for a context; what is wrong with its files is told."""
    from cru.core.compose import load_settings

    settings, _, notices = load_settings(start_of(run.parsed, context))
    for notice in notices:
        say(f"cru: {notice}")
    return settings
