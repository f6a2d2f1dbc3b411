"""`-b` and `-B`: contexts act on the messages in their inboxes, each in a turn of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cru.core.base.values.errors import CruError
from cru.core.conversations import ContextHeld
from cru.core.conversations.inbox import InboxMessage, read_inbox
from cru.faces.cli.console import ExitStatus, complain, say
from cru.faces.cli.event_loop import SignalInterrupt
from cru.faces.cli.operations.flag_run import FlagRun
from cru.faces.cli.run_options import start_of

PROMPT = "inbox.md"


def check_all(run: FlagRun) -> None:
    """Every context; one whose turn fails, or that another process holds, does not keep the others waiting."""
    _check(run, run.home.names(), skips_held=True)


def check_one(run: FlagRun, name: str) -> None:
    """One context, wherever it began. That it is held is an error."""
    if origin := run.home.foreign_origin(name):
        say(f"cru: {name} began in another project, {origin}")
    _check(run, [run.store(name).name], skips_held=False)


def _check(run: FlagRun, names: Iterable[str], *, skips_held: bool) -> None:
    waiting = {name: messages for name in _without_links(run, names) if (messages := _read_waiting(run, name))}
    if not waiting:
        run.say("no messages wait")
    for name, messages in waiting.items():
        if run.parsed.has("no-llm") and not run.parsed.has("force-llm"):
            from cru.faces.cli.operations.listing import count_waiting

            run.show(f"{name}: {count_waiting(len(messages))}")
            continue
        if skips_held and (origin := run.home.foreign_origin(name)):
            say(
                f"cru: {name} is left out: it began in another project, {origin} (`cru -b` there, or `cru -B {name}` here)"
            )
            continue
        if not _read_waiting(run, name):
            continue  # another run was faster, or the turn of another context took them away
        if len(waiting) > 1 and not run.parsed.has("json"):
            run.show(f"[{name}]")
        run.code = max(run.code, _run_turn(run, name, skips_held))


def _without_links(run: FlagRun, names: Iterable[str]) -> list[str]:
    """Without further names (links) of the same folder."""
    folders: dict[str, str] = {}
    for name in names:
        folders.setdefault(os.path.realpath(run.home.path / "contexts" / name), name)
    return list(folders.values())


def _read_waiting(run: FlagRun, name: str) -> list[InboxMessage]:
    """The messages in an inbox; what is wrong with it is told and does not stop anything."""
    try:
        messages, problems = read_inbox(run.home.folder_of(name))
    except CruError as error:
        complain(error.message, error.hint)
        run.code = max(run.code, error.code)
        return []
    if problems and not messages:
        for problem in problems:
            say(f"cru: {name}: {problem.text()}")
    return messages


def _run_turn(run: FlagRun, name: str, skips_held: bool) -> int:
    """One turn; its exit status. Raises SignalInterrupt."""
    from cru.faces.cli.session_run import PromptRequest, one_shot

    try:
        code = one_shot(start_of(run.parsed, name), run.parsed, PromptRequest(_prompt(run), source="inbox"))
    except ContextHeld as error:
        if skips_held:
            say(f"cru: {name} is left out: {error.message}")
            return ExitStatus.DONE
        return _report(run, error)
    except CruError as error:
        return _report(run, error)
    if code > 128:
        raise SignalInterrupt(code)
    return code


def _report(run: FlagRun, error: CruError) -> int:
    complain(error.message, error.hint)
    if run.parsed.has("json"):
        from cru.faces.cli.json_mode.face import JsonFace

        JsonFace().failed(error.message, error.hint, error.code)
    return error.code


def _prompt(run: FlagRun) -> str:
    """The user's own text, if there is one with words in it. Raises StoreUnreadable."""
    from cru.core.base.bundled import INBOX
    from cru.core.base.files.regular import read_regular
    from cru.core.conversations import read_error

    path = run.home.path / "prompts" / PROMPT
    try:
        return read_regular(path).decode("utf-8", "replace").strip() or INBOX
    except FileNotFoundError:
        return INBOX
    except OSError as error:
        raise read_error(path, error) from error
