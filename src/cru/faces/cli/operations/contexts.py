"""Flags that choose, empty, rename and delete contexts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cru.core.base.config.closest import did_you_mean
from cru.core.base.values.errors import CruError
from cru.core.conversations import ContextError, NoSuchContext
from cru.core.conversations.inbox import read_inbox
from cru.core.events.payloads import ContextSwitched
from cru.faces.cli.console import say
from cru.faces.cli.terminal.keyboard import ask_line

if TYPE_CHECKING:
    from cru.faces.cli.operations.flag_run import FlagRun


class NotConfirmed(CruError):
    """Something that a person must confirm, and nobody is there."""


def use_once(run: FlagRun, _name: str) -> None:
    if run.name != run.home.current:
        run.events.append(ContextSwitched(run.home.current, run.name, transient=True))
    run.say(f"context {run.name}")


def switch(run: FlagRun, name: str) -> None:
    new = run.name if run.parsed.last("transient-context") is None else run.home.resolve(name)
    old = run.home.current
    run.home.open(new)
    run.home.switch(new)
    run.say(f"context {new}")
    if old != new:
        run.events.append(ContextSwitched(old, new))


def archive(run: FlagRun) -> None:
    run.with_session(run.name, lambda session: session.archive())
    run.say(f"archived {run.name}")


def archive_other(run: FlagRun, name: str) -> None:
    store = run.store(name)
    with store.lock("cru -A"):
        store.refresh()
        entries = list(store.visible())
        store.anchor("archive", "", [])
        store.transcript(entries)
        store.rotate()
    run.show(f"Archived {store.name}")


def compact(run: FlagRun) -> None:
    from cru.core.turn import TooFewMessages

    try:
        run.with_session(run.name, lambda session: session.compact())
    except TooFewMessages as error:
        run.show(f"{run.name}: {error.message}")
    else:
        run.show(f"Compacted {run.name}")


def compact_other(run: FlagRun, name: str) -> None:
    store = run.store(name)
    with store.lock("cru -Z"):
        store.refresh()
        entries = list(store.visible())
        if sum(entry.entry_type == "message" for entry in entries) <= 2:
            run.show(f"{store.name}: two messages or fewer: nothing to compact")
            return
        store.anchor("compaction", store.summary(), [])
        store.transcript(entries)
        store.rotate()
    run.show(f"Compacted {store.name}")


def rename(run: FlagRun, new: str) -> None:
    if run.name == run.home.current:
        run.home.open(run.name)  # there is always a current context, though it may have no folder yet
    run.home.rename(run.name, new)
    run.say(f"renamed {run.name} to {new}")
    run.name = new


def rename_other(run: FlagRun, old: str, new: str) -> None:
    name = run.home.resolve_existing(old)
    run.home.rename(name, new)
    run.name = new if run.name == name else run.name
    run.show(f"Renamed {name} to {new}")


def delete(run: FlagRun) -> None:
    _confirmed_delete(run, run.name, "the current context ", sure=False)


def delete_other(run: FlagRun, name: str) -> None:
    _confirmed_delete(run, run.home.resolve_existing(name), "", sure=True)


def _confirmed_delete(run: FlagRun, name: str, what: str, sure: bool) -> None:
    """Ask on a terminal; without one only a context that was named is deleted. Raises NotConfirmed."""
    if name not in run.home.names():
        _nothing_to_delete(run, name)
        return
    unread = _unread(run, name)
    if sys.stdin.isatty() and sys.stderr.isatty():
        also = f" and {unread}" if unread else ""
        answer = ask_line(f"Delete {what}{name} with all its files{also}? [y/N] ")
        sure = answer.strip().lower() in ("y", "yes")
        if not sure:
            run.show("Aborted: nothing was deleted")
            return
    elif not sure:
        raise NotConfirmed(
            f"{name} is not deleted: nobody can confirm it without a terminal", f"cru -D {name} deletes it unasked"
        )
    run.home.delete(name)
    run.show(f"Deleted {name} with {unread}" if unread else f"Deleted {name}")
    for text in run.home.failed_removals:
        say(f"cru: {text}")
    if run.name == name:
        run.name = run.home.current


def _unread(run: FlagRun, name: str) -> str:
    """What its inbox holds, "" if nothing."""
    try:
        count = len(read_inbox(run.home.folder_of(name))[0])
    except ContextError:
        return "an inbox that cannot be read"
    return "" if not count else "1 unread message" if count == 1 else f"{count} unread messages"


def _nothing_to_delete(run: FlagRun, name: str) -> None:
    """No error, as in chibi; a program (--json-config) is to know. Raises NoSuchContext."""
    near = did_you_mean(name, run.home.names())
    if run.parsed.has("json-config"):
        raise NoSuchContext(f"there is no context '{name}'", near)
    run.show(f"There is no context {name}")
    if near:
        say(f"cru: {near}")
