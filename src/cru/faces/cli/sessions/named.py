"""`cru resume NAME`, `cru new NAME` and `cru sessions open NAME`: a conversation becomes the current one, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.base.config.closest import did_you_mean
from cru.faces.cli.console import say
from cru.faces.cli.flag_places import as_prompt
from cru.faces.cli.flags import Parsed, UsageProblem, find
from cru.faces.cli.run import can_chat, run
from cru.faces.cli.run_options import open_home
from cru.faces.cli.sessions.rows import is_unfinished

if TYPE_CHECKING:
    from cru.core.conversations.home import Home


def resume(parsed: Parsed, name: str) -> int:
    """Continue the unfinished turn of a conversation, or else the conversation. Raises UsageProblem if there is none of that name."""
    home = open_home(parsed)
    if name != "-" and not home.exists(name):
        near = did_you_mean(name, home.names()) or "`cru sessions` lists them"
        raise UsageProblem(f"there is no conversation {name}", f"{near}\n{as_prompt(('resume', name))}")
    return open_conversation(parsed, home, home.resolve(name))


def create(parsed: Parsed, name: str) -> int:
    """Start a conversation of that name. Raises UsageProblem if there is one."""
    if open_home(parsed).exists(name):
        hint = f"`cru resume {name}` continues it\n{as_prompt(('new', name))}"
        raise UsageProblem(f"there is a conversation {name} already", hint)
    return _switch(parsed, name, "")


def open_conversation(parsed: Parsed, home: Home, name: str) -> int:
    """Finish the turn that a conversation has begun; if it has none, open a chat on it, or without a terminal only switch to it."""
    if is_unfinished(home, name):
        return run(_with_flags(parsed, ("-c", name), ("--resume",)))
    return _switch(parsed, name, "; nothing in it is unfinished")


def _switch(parsed: Parsed, name: str, note: str) -> int:
    """Commands read no standard input: without a terminal nothing is asked."""
    if can_chat(parsed):
        return run(_with_flags(parsed, ("-c", name)))
    code = run(_with_flags(parsed, ("-c", name), ("--no-llm",)))
    say(f"cru: {open_home(parsed).current} is the current conversation now{note}")
    return code


def _with_flags(parsed: Parsed, *lines: tuple[str, ...]) -> Parsed:
    """Return the command line without its words, and with these flags in place of those that choose a conversation."""
    kept = [item for item in parsed.flags if item[0].name not in ("switch-context", "transient-context")]
    return Parsed((*kept, *((find(name)[0], tuple(values)) for name, *values in lines)), ())
