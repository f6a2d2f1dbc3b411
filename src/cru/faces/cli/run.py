"""One run of the command: operations in the order of the flag table, then the prompt, then the farewell."""

from __future__ import annotations

import sys
from typing import Any

from msgspec import Struct

from cru.contexts.home import Home
from cru.faces.cli import start
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.place import context_name, home_path, start_of


def run(parsed: Parsed) -> int:
    """Everything that is no management command; returns the exit status."""
    home = Home(home_path(parsed))
    operations = parsed.operations()
    quiet = any(flag.quiet for flag, _ in operations) or parsed.has("no-llm")
    if parsed.has("force-llm"):
        quiet = False
    if parsed.has("resume") and parsed.words:
        raise UsageProblem("--resume takes no prompt", "run `cru --resume`, then ask")
    text, warning = ("", "") if quiet or parsed.has("resume") else _prompt(parsed)
    name, events = _operate(parsed, home, context_name(parsed, home))
    if warning:
        print(f"cru: {warning}", file=sys.stderr)
    if not quiet and (text.strip() or parsed.has("resume")):
        return _turn(parsed, name, text, events)
    if events:
        from cru.faces.cli.one_shot import announce

        announce(start_of(parsed, name), parsed, events)
    return start.DONE if quiet else _without_prompt(parsed, name, bool(operations))


def _operate(parsed: Parsed, home: Home, name: str) -> tuple[str, tuple[Struct, ...]]:
    """Carry out the flags; the context's name afterwards, and what handlers are to hear of."""
    operations = parsed.operations()
    if not operations:
        return name, ()
    from cru.faces.cli.operations import Operations

    work = Operations(parsed, home, name)
    work.run(operations)
    return work.name, tuple(work.events)


def _prompt(parsed: Parsed) -> tuple[str, str]:
    from cru.faces.cli.prompt_text import read_prompt

    return read_prompt(parsed.words)


def _without_prompt(parsed: Parsed, name: str, did_something: bool) -> int:
    """Nothing to ask: quiet if something was done, a chat on a terminal, else an error."""
    if did_something:
        return start.DONE
    if sys.stdin is not None and sys.stdin.isatty() and not parsed.has("json"):
        from cru.faces.cli.chat import chat

        return chat(start_of(parsed, name), parsed)
    raise UsageProblem("there is no prompt", 'cru "your question", or pipe text into it')


def _turn(parsed: Parsed, name: str, text: str, events: tuple[Struct, ...]) -> int:
    from cru.faces.cli.one_shot import Ask, one_shot

    return one_shot(start_of(parsed, name), parsed, Ask(text, _attachments(parsed), events))


def _attachments(parsed: Parsed) -> tuple[Any, ...]:
    names = parsed.all("attach")
    if not names:
        return ()
    from cru.engine.attach import attach
    from cru.faces.cli.place import working_directory

    return tuple(attach(name, working_directory()) for name in names)
