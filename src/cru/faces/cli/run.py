"""One run of the command: operations in the order of the flag table, then the prompt, then the farewell."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from msgspec import Struct

from cru.contexts.home import Home
from cru.faces.cli import entry
from cru.faces.cli.console import say
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import context_name, home_path, overrides, start_of

# Flags that only say how this run works: a chat may follow them.
HOW = ("-C", "-U")


def run(parsed: Parsed) -> int:
    """Everything that is no management command; returns the exit status."""
    operations = parsed.operations()
    quiet = any(flag.quiet for flag, _ in operations) or parsed.has("no-llm")
    if parsed.has("force-llm"):
        quiet = False
    _check(parsed)
    home = Home(home_path(parsed))
    if quiet and parsed.words:
        say(f"cru: the prompt is not sent ({_silencer(parsed)})")
    text, warning = ("", "") if quiet or parsed.has("resume") else _prompt(parsed)
    name = context_name(parsed, home)
    _destroy_due(parsed, home, name)
    name, events, code, results = _operate(parsed, home, name)
    if warning:
        say(f"cru: {warning}")
    asked = (
        _PromptText(text, parsed.literal)
        if not results
        else _PromptText("\n\n".join([*results, text]).strip(), literal=True)
    )
    if not quiet and (asked.text.strip() or parsed.has("resume")):
        return max(code, _turn(parsed, name, asked, events))
    events = tuple(event for event in events if not getattr(event, "transient", False))  # no session, no other context
    if events:
        from cru.faces.cli.one_shot import announce

        announce(start_of(parsed, name), parsed, events)
    if quiet or any(flag.short not in HOW for flag, _ in operations):
        return _done(parsed, code)
    return _without_prompt(parsed, name)


class _PromptText(NamedTuple):
    """A prompt; `literal`: it is no command, whatever it begins with. (After -- nothing is one, nor is what a tool gave.)"""

    text: str
    literal: bool


def _silencer(parsed: Parsed) -> str:
    """The first flag because of which the model is not called."""
    return next(flag.short or flag.long for flag, _ in parsed.given if flag.quiet or flag.name == "no-llm")


def _check(parsed: Parsed) -> None:
    """What does not go together. Raises UsageProblem."""
    if parsed.has("set"):
        overrides(parsed)
    if parsed.has("resume") and (parsed.words or parsed.has("plugin") or parsed.has("call-tool")):
        raise UsageProblem("--resume takes no prompt", "run `cru --resume`, then ask")
    if parsed.has("resume") and parsed.has("attach"):
        raise UsageProblem("--resume takes no --attach", "run `cru --resume`, then ask with the file")


def _destroy_due(parsed: Parsed, home: Home, name: str) -> None:
    """Contexts that were to destroy themselves by now go, but for those that this run has to do with."""
    if not home.expiring:
        return
    from cru.contexts.expiry import destroy_due

    named = {value for _, values in parsed.given for value in values}
    if "-" in named and home.previous:
        named.add(home.previous)
    for text in destroy_due(home, {name, *named}):
        say(f"cru: {text}")


def _operate(parsed: Parsed, home: Home, name: str) -> tuple[str, tuple[Struct, ...], int, list[str]]:
    """Carry out the flags; the context's name afterwards, what handlers are to hear of, the exit status of turns that flags ran, and
    what calls of tools gave."""
    operations = parsed.operations()
    if not operations:
        return name, (), entry.DONE, []
    from cru.faces.cli.operations.flag_run import FlagRun

    work = FlagRun(parsed, home, name)
    work.carry_out(operations)
    return work.name, tuple(work.events), work.code, work.results


def _prompt(parsed: Parsed) -> tuple[str, str]:
    from cru.faces.cli.prompt_text import read_prompt

    return read_prompt(parsed.words)


def _done(parsed: Parsed, code: int) -> int:
    """Something was done, and nothing is to be asked."""
    if parsed.has("json"):
        from cru.engine.turn import LegResult
        from cru.faces.cli.json_mode.face import JsonFace

        JsonFace().result(LegResult("error" if code else "done", code=code), code)
    return code


def _without_prompt(parsed: Parsed, name: str) -> int:
    """Nothing to ask: a chat on a terminal, else an error. The chat's prompt stands on stderr, so stdout may be a pipe."""
    if sys.stdin.isatty() and sys.stderr.isatty() and not parsed.has("json") and not parsed.has("attach"):
        from cru.faces.cli.chat.chat import chat

        return chat(start_of(parsed, name), parsed)
    raise UsageProblem("there is no prompt", 'cru "your question", or pipe text into it')


def _turn(parsed: Parsed, name: str, asked: _PromptText, events: tuple[Struct, ...]) -> int:
    from cru.faces.cli.one_shot import Ask, one_shot

    ask = Ask(asked.text, _attachments(parsed), events, literal=asked.literal)
    return one_shot(start_of(parsed, name), parsed, ask)


def _attachments(parsed: Parsed) -> tuple[Any, ...]:
    names = parsed.all("attach")
    if not names:
        return ()
    from cru.engine.prompts import read_attachment
    from cru.faces.cli.run_options import checked, working_directory

    return tuple(read_attachment(checked(name), working_directory()) for name in names)
