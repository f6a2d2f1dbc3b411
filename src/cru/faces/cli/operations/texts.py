"""Flags that write a text of a context: its system prompt, its user name."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from cru.faces.cli.flags import UsageProblem

if TYPE_CHECKING:
    from cru.core.conversations.store import FileContext
    from cru.faces.cli.operations.flag_run import FlagRun

SUFFIXES = (".md", ".txt", ".prompt")


def set_prompt(run: FlagRun, text: str) -> None:
    _write_prompt(run.store(), text, "cru -y")
    run.say(f"system prompt of {run.name} set")


def set_prompt_other(run: FlagRun, name: str, text: str) -> None:
    store = run.store(name)
    _write_prompt(store, text, "cru -Y")
    run.show(f"System prompt of {store.name} set")


def _write_prompt(store: FileContext, value: str, command: str) -> None:
    text = _text_or_file(value)
    with store.lock(command):
        store.write_text("system_prompt.md", text)


def _text_or_file(value: str) -> str:
    """A file's text, or the value itself; what looks like a file that is not there is a slip. Raises UsageProblem."""
    path = Path(value)
    try:
        if path.is_file():
            return path.read_text("utf-8")
        if len(value.split()) == 1 and value == value.strip() and ("/" in value or value.endswith(SUFFIXES)):
            raise UsageProblem(
                f"there is no file {value}", f"as a text: {shlex.quote(f'{value} ')}, with a space behind it"
            )
        return value
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{value} is not UTF-8 text") from error
    except OSError as error:
        if error.errno in (36, 63):  # ENAMETOOLONG: it is a text, not a file
            return value
        raise UsageProblem(f"{value} cannot be read: {error.strerror}") from error


def set_username(run: FlagRun, name: str) -> None:
    _check_name(name)
    from cru.core.base.config.edit import set_value
    from cru.core.events.payloads import ConfigChanged

    store = run.store()
    with store.lock("cru -u"):
        set_value(store.folder / "local.toml", "username", name)
    run.events.append(ConfigChanged("username", name))
    run.say(f"user name {name} saved for {run.name}")


def use_username(run: FlagRun, name: str) -> None:
    _check_name(name)
    run.say(f"user name {name}")


def _check_name(name: str) -> None:
    """Raises UsageProblem."""
    if not name.strip() or not name.isprintable():
        raise UsageProblem(f"not a user name: {name!r}", "one line with something in it, as in: cru -u ann")
