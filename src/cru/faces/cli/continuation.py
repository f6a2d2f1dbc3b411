"""What to type to go on: the command lines that `cru` names at the end of a run."""

from __future__ import annotations

import re
import shlex

from cru.core.base.config.secret import holds_secret
from cru.core.models import ModelSettings
from cru.core.models.protocol import NoModel
from cru.core.models.providers import refuse_misspelt, split_model
from cru.faces.cli.console import ExitStatus
from cru.faces.cli.flags import Parsed

# Flags that a run's continuation needs too.
KEPT = (
    "home",
    "project-root",
    "model",
    "mode",
    "trust",
    "agent",
    "hooks",
    "strict-hooks",
    "set",
    "no-tool-calls",
    "fail-on-refusal",
)

_CHAT_COMMAND = re.compile("(?<!did you mean )`(?=/[a-z])")
"""Where a command of the chat begins in a hint; a suggestion is a name and stays as it is."""


def resume_command(parsed: Parsed, context: str, code: int) -> str:
    """What to type to go on with an unfinished turn of this run, that ended with an exit status: a model that cannot be is left out."""
    without = "model" if code == ExitStatus.NO_MODEL and _is_no_model(parsed.last("model") or "") else ""
    return _same_command(parsed, "-C", context, "--resume", without=without)


def secrets_hint(parsed: Parsed) -> str:
    """Which settings of the command line those commands leave out because they are secret; "" if none."""
    names = dict.fromkeys(value.partition("=")[0] for value in parsed.all("set") if holds_secret(value))
    return (
        f"and again with {' '.join(f'-s {name}=…' for name in names)}: what is secret is not repeated here"
        if names
        else ""
    )


def spell_outside_chat(hint: str, context: str = "", *, keeps: bool = True) -> str:
    """Return a hint in which each command of the chat (`/clear`) is one that the shell takes (`cru /clear`).

    context: a conversation that is not the current one; keeps: whether the run keeps a conversation, else no command can change it"""
    if not keeps:
        return "; ".join(clause for clause in hint.split("; ") if not _CHAT_COMMAND.search(clause))
    where = f"-C {shlex.quote(context)} " if context else ""
    return _CHAT_COMMAND.sub(lambda _: f"`cru {where}", hint)


def spell_in_chat(hint: str) -> str:
    """Return a hint in which `cru login` is the chat's own command."""
    return re.sub(r"`cru (?=login( [\w.:/]+)?`)", "`/", hint)


def chat_command(parsed: Parsed, context: str) -> str:
    """What to type to go on with the conversation of this run."""
    return _same_command(parsed, "-C", context)


def _same_command(parsed: Parsed, *words: str, without: str = "") -> str:
    """A command line that works in the same place and the same way; the flag `without` is left out."""
    flags = [(flag, values) for flag, values in parsed.flags if flag.name in KEPT and flag.name != without]
    flags = [(flag, values) for flag, values in flags if flag.name != "set" or not holds_secret(values[0])]
    kept = [word for flag, values in flags for word in (flag.short or flag.long, *values)]
    return shlex.join(["cru", *kept, *words])


def _is_no_model(name: str) -> bool:
    """Whether neither a key nor a file could make a model of that name."""
    try:
        provider, identity = split_model(name, ModelSettings(), {})
        if not provider:
            refuse_misspelt(identity)
    except NoModel:
        return True
    return False
