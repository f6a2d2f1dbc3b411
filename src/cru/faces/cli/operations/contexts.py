"""Flags that choose, empty, rename and delete contexts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cru.faces.cli.console import say
from cru.values.errors import CruError

if TYPE_CHECKING:
    from cru.faces.cli.operations import Operations


class NotConfirmed(CruError):
    """Something that a person must confirm, and nobody is there."""


def transient(do: Operations, _name: str) -> None:
    from cru.events.payloads import ContextSwitched

    if do.name != do.home.current:
        do.events.append(ContextSwitched(do.home.current, do.name, transient=True))
    do.say(f"context {do.name}")


def switch(do: Operations, name: str) -> None:
    from cru.events.payloads import ContextSwitched

    new = do.name if do.parsed.last("transient-context") is None else do.home.resolve(name)
    old = do.home.current
    do.home.open(new)
    do.home.switch(new)
    do.say(f"context {new}")
    if old != new:
        do.events.append(ContextSwitched(old, new))


def archive(do: Operations) -> None:
    do.with_session(do.name, lambda session: session.archive())
    do.say(f"archived {do.name}")


def archive_other(do: Operations, name: str) -> None:
    store = do.store(name)
    with store.lock("cru -A"):
        store.refresh()
        gone = list(store.visible())
        store.anchor("archive", "", [])
        store.transcript(gone)
        store.rotate()
    do.show(f"Archived {store.name}")


def compact(do: Operations) -> None:
    from cru.engine.errors import TooFewMessages

    try:
        do.with_session(do.name, lambda session: session.compact())
    except TooFewMessages as error:
        do.show(f"{do.name}: {error.message}")
    else:
        do.show(f"Compacted {do.name}")


def compact_other(do: Operations, name: str) -> None:
    store = do.store(name)
    with store.lock("cru -Z"):
        store.refresh()
        messages = [e for e in store.visible() if e.entry_type == "message"]
        if len(messages) <= 2:
            do.show(f"{store.name}: two messages or fewer: nothing to compact")
            return
        store.anchor("compaction", store.summary(), [])
        store.transcript(messages)
        store.rotate()
    do.show(f"Compacted {store.name}")


def rename(do: Operations, new: str) -> None:
    do.home.rename(do.name, new)
    do.say(f"renamed {do.name} to {new}")
    do.name = new


def rename_other(do: Operations, old: str, new: str) -> None:
    name = do.home.named(old)
    do.home.rename(name, new)
    do.name = new if do.name == name else do.name
    do.show(f"Renamed {name} to {new}")


def delete(do: Operations) -> None:
    _confirmed_delete(do, do.name, "the current context ", sure=False)


def delete_other(do: Operations, name: str) -> None:
    _confirmed_delete(do, do.home.named(name), "", sure=True)


def _confirmed_delete(do: Operations, name: str, what: str, sure: bool) -> None:
    """Ask on a terminal; without one only a context that was named is deleted. Raises NotConfirmed."""
    if name not in do.home.names():
        _nothing_to_delete(do, name)
        return
    unread = _unread(do, name)
    if sys.stdin.isatty() and sys.stderr.isatty():
        also = f" and {unread}" if unread else ""
        print(f"Delete {what}{name} with all its files{also}? [y/N] ", end="", file=sys.stderr, flush=True)
        sure = sys.stdin.readline().strip().lower() in ("y", "yes")
        if not sure:
            do.show("Aborted: nothing was deleted")
            return
    elif not sure:
        raise NotConfirmed(
            f"{name} is not deleted: nobody can confirm it without a terminal", f"cru -D {name} deletes it unasked"
        )
    do.home.delete(name)
    do.show(f"Deleted {name} with {unread}" if unread else f"Deleted {name}")
    for text in do.home.left:
        say(f"cru: {text}")
    if do.name == name:
        do.name = do.home.current


def _unread(do: Operations, name: str) -> str:
    """What its inbox holds, "" if nothing."""
    from cru.contexts.errors import ContextError

    try:
        count = len(do.home.waiting(name)[0])
    except ContextError:
        return "an inbox that cannot be read"
    return "" if not count else "1 unread message" if count == 1 else f"{count} unread messages"


def _nothing_to_delete(do: Operations, name: str) -> None:
    """No error, as in chibi; a program (--json-config) is to know. Raises NoSuchContext."""
    from cru.config.closest import did_you_mean

    near = did_you_mean(name, do.home.names())
    if do.parsed.has("json-config"):
        from cru.contexts.errors import NoSuchContext

        raise NoSuchContext(f"there is no context '{name}'", near)
    do.show(f"There is no context {name}")
    if near:
        say(f"cru: {near}")
