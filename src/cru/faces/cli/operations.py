"""The flags that do something: one function each, in a table; run in the order of the flag table (docs/command-line.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.faces.cli.flags import Flag, Parsed, UsageProblem
from cru.faces.cli.place import start_of
from cru.faces.cli.terminal import say, show
from cru.values.errors import CruError

if TYPE_CHECKING:
    from cru.contexts.home import Home
    from cru.contexts.store import FileContext
    from cru.engine.session import Session


class NotConfirmed(CruError):
    """Something that a person must confirm, and nobody is there."""


class Operations:
    """Carries out flags. `name` is the context of the run; `events` is what handlers still have to hear of."""

    def __init__(self, parsed: Parsed, home: Home, name: str) -> None:
        self.parsed = parsed
        self.home = home
        self.name = name
        self.events: list[Struct] = []
        self._verbose = parsed.has("verbose")
        self._json: Any = None

    def run(self, operations: list[tuple[Flag, tuple[str, ...]]]) -> None:
        for flag, values in operations:
            TABLE[flag.short](self, *values)

    def say(self, text: str) -> None:
        """Diagnostics of flags that concern the current context: stderr, with -v."""
        if self._verbose:
            say(f"[{text}]")

    def show(self, text: str) -> None:
        """What a flag was asked for: stdout, with --json as a line of its own."""
        if not self.parsed.has("json"):
            show(text)
            return
        if self._json is None:
            from cru.faces.cli.json_face import JsonFace

            self._json = JsonFace()
        self._json.output(text)

    def store(self, name: str | None = None) -> FileContext:
        """The context of the run, or another one that exists. Raises NoSuchContext."""
        wanted = self.name if name is None else self.home.resolve(name)
        if name is not None and not self.home.exists(wanted):
            from cru.config.closest import did_you_mean
            from cru.contexts.errors import NoSuchContext

            raise NoSuchContext(
                f"there is no context '{wanted}'", did_you_mean(wanted, self.home.names()) or "cru -L lists them"
            )
        return self.home.open(wanted)

    def with_session(self, name: str, work: Callable[[Session], Coroutine[Any, Any, None]]) -> None:
        """Build a session on a context, do the work, close it."""
        from cru.faces.cli.one_shot import with_session

        with_session(start_of(self.parsed, name), self.parsed, work)


def _transient(do: Operations, _name: str) -> None:
    from cru.events.payloads import ContextSwitched

    if do.name != do.home.current:
        do.events.append(ContextSwitched(do.home.current, do.name, transient=True))
    do.say(f"context {do.name}")


def _switch(do: Operations, name: str) -> None:
    from cru.events.payloads import ContextSwitched

    new = do.name if do.parsed.last("transient-context") is None else do.home.resolve(name)
    old = do.home.current
    do.home.open(new)
    do.home.switch(new)
    do.say(f"context {new}")
    if old != new:
        do.events.append(ContextSwitched(old, new))


def _archive(do: Operations) -> None:
    do.with_session(do.name, lambda session: session.archive())
    do.say(f"archived {do.name}")


def _archive_other(do: Operations, name: str) -> None:
    store = do.store(name)
    with store.lock("cru -A"):
        store.refresh()
        store.transcript(store.visible())
        store.anchor("archive", "", [])
        store.rotate()
    do.show(f"Archived {store.name}")


def _compact(do: Operations) -> None:
    do.with_session(do.name, lambda session: session.compact())
    do.show(f"Compacted {do.name}")


def _compact_other(do: Operations, name: str) -> None:
    store = do.store(name)
    with store.lock("cru -Z"):
        store.refresh()
        messages = [e for e in store.visible() if e.entry_type == "message"]
        if len(messages) <= 2:
            do.show(f"{store.name}: two messages or fewer, nothing to compact")
            return
        store.transcript(messages)
        store.anchor("compaction", store.summary(), [])
        store.rotate()
    do.show(f"Compacted {store.name}")


def _rename(do: Operations, new: str) -> None:
    do.home.rename(do.name, new)
    do.say(f"renamed {do.name} to {new}")
    do.name = new


def _rename_other(do: Operations, old: str, new: str) -> None:
    name = do.home.resolve(old)
    do.home.rename(name, new)
    do.name = new if do.name == name else do.name
    do.show(f"Renamed {name} to {new}")


def _prompt(do: Operations, text: str) -> None:
    _write_prompt(do.store(), text, "cru -y")
    do.say(f"system prompt of {do.name} set")


def _prompt_other(do: Operations, name: str, text: str) -> None:
    store = do.store(name)
    _write_prompt(store, text, "cru -Y")
    do.show(f"System prompt of {store.name} set")


def _write_prompt(store: FileContext, value: str, command: str) -> None:
    text = _text_or_file(value)
    with store.lock(command):
        store.write_text("system_prompt.md", text)


def _text_or_file(value: str) -> str:
    path = Path(value)
    try:
        return path.read_text("utf-8") if path.is_file() else value
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{value} is not UTF-8 text") from error
    except OSError as error:
        if error.errno in (36, 63):  # ENAMETOOLONG: it is a text, not a file
            return value
        raise UsageProblem(f"{value} cannot be read: {error.strerror}") from error


def _username(do: Operations, name: str) -> None:
    from cru.config.edit import set_value
    from cru.events.payloads import ConfigChanged

    store = do.store()
    with store.lock("cru -u"):
        set_value(store.folder / "local.toml", "username", name)
    do.events.append(ConfigChanged("username", name))
    do.say(f"user name {name} saved for {do.name}")


def _transient_username(do: Operations, name: str) -> None:
    do.say(f"user name {name}")


def _list_current(do: Operations) -> None:
    from cru.faces.cli.listing import about

    do.show(about(do.home, do.store()))


def _list_all(do: Operations) -> None:
    from cru.faces.cli.listing import contexts

    do.show(contexts(do.home, do.name))


def _delete(do: Operations) -> None:
    _confirmed_delete(do, do.name, "the current context ", sure=False)


def _delete_other(do: Operations, name: str) -> None:
    _confirmed_delete(do, do.home.resolve(name), "", sure=True)


def _confirmed_delete(do: Operations, name: str, what: str, sure: bool) -> None:
    """Ask on a terminal; without one only a context that was named is deleted. Raises NotConfirmed."""
    if not do.home.exists(name):
        do.show(f"There is no context {name}")
        return
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"Delete {what}{name} with all its files? [y/N] ", end="", file=sys.stderr, flush=True)
        sure = sys.stdin.readline().strip().lower() in ("y", "yes")
        if not sure:
            do.show("Aborted: nothing was deleted")
            return
    elif not sure:
        raise NotConfirmed(
            f"{name} is not deleted: nobody can confirm it without a terminal", f"cru -D {name} deletes it unasked"
        )
    do.home.delete(name)
    do.show(f"Deleted {name}")
    if do.name == name:
        do.name = do.home.current


def _log(do: Operations, count: str) -> None:
    _show(do, do.store(), count)


def _log_other(do: Operations, name: str, count: str) -> None:
    _show(do, do.store(name), count)


def _show(do: Operations, store: FileContext, count: str) -> None:
    """All entries (0) are those of the archive too; where it hides what was asked for, that is said."""
    from cru.faces.cli.listing import log, spoken

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


def _inspect(do: Operations, thing: str) -> None:
    from cru.faces.cli.listing import inspect

    do.show(inspect(do.home, do.store(), thing))


def _inspect_other(do: Operations, name: str, thing: str) -> None:
    from cru.faces.cli.listing import inspect

    do.show(inspect(do.home, do.store(name), thing))


TABLE: dict[str, Callable[..., None]] = {
    "-C": _transient, "-c": _switch, "-a": _archive, "-A": _archive_other, "-z": _compact, "-Z": _compact_other,
    "-r": _rename, "-R": _rename_other, "-y": _prompt, "-Y": _prompt_other, "-u": _username, "-U": _transient_username,
    "-l": _list_current, "-L": _list_all, "-d": _delete, "-D": _delete_other, "-g": _log, "-G": _log_other,
    "-n": _inspect, "-N": _inspect_other,
}  # fmt: skip
