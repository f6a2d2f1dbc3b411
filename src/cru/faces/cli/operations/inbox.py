"""`-b` and `-B`: contexts act on the messages in their inboxes, each in a turn of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cru.contexts.errors import ContextHeld
from cru.contexts.inbox import InboxMessage
from cru.faces.cli import entry as exits
from cru.faces.cli.console import say
from cru.faces.cli.operations import Operations
from cru.faces.cli.run_options import start_of
from cru.values.errors import CruError

PROMPT = "inbox.md"


def sweep(do: Operations) -> None:
    """Every context; one whose turn fails, or that another process holds, does not keep the others waiting."""
    _sweep(do, do.home.names(), patient=True)


def one(do: Operations, name: str) -> None:
    """One context. That it is held is an error."""
    _sweep(do, [do.store(name).name], patient=False)


def _sweep(do: Operations, names: Iterable[str], *, patient: bool) -> None:
    waiting = {name: letters for name in _once(do, names) if (letters := _waiting(do, name))}
    if not waiting:
        do.say("no messages wait")
    for name, letters in waiting.items():
        if do.parsed.has("no-llm") and not do.parsed.has("force-llm"):
            from cru.faces.cli.operations.listing import messages_wait

            do.show(f"{name}: {messages_wait(len(letters))}")
            continue
        if not _waiting(do, name):
            continue  # another run was faster, or the turn of another context took them away
        if len(waiting) > 1 and not do.parsed.has("json"):
            do.show(f"[{name}]")
        do.code = max(do.code, _act(do, name, patient))


def _once(do: Operations, names: Iterable[str]) -> list[str]:
    """Without further names (links) of the same folder."""
    folders: dict[str, str] = {}
    for name in names:
        folders.setdefault(os.path.realpath(do.home.path / "contexts" / name), name)
    return list(folders.values())


def _waiting(do: Operations, name: str) -> list[InboxMessage]:
    """The messages in an inbox; what is wrong with it is told and does not stop anything."""
    try:
        letters, problems = do.home.waiting(name)
    except CruError as error:
        exits.complain(error.message, error.hint)
        do.code = max(do.code, error.code)
        return []
    if problems and not letters:
        for problem in problems:
            say(f"cru: {name}: {problem.file}:{problem.line}: {problem.message}")
    return letters


def _act(do: Operations, name: str, patient: bool) -> int:
    """One turn; its exit status. Raises Interrupted."""
    from cru.faces.cli.one_shot import Ask, one_shot

    try:
        code = one_shot(start_of(do.parsed, name), do.parsed, Ask(_prompt(do), source="inbox"))
    except ContextHeld as error:
        if patient:
            say(f"cru: {name} is left out: {error.message}")
            return exits.DONE
        return _failed(do, error)
    except CruError as error:
        return _failed(do, error)
    if code > 128:
        raise exits.SignalInterrupt(code)
    return code


def _failed(do: Operations, error: CruError) -> int:
    exits.complain(error.message, error.hint)
    if do.parsed.has("json"):
        from cru.faces.cli.json_mode.face import JsonFace

        JsonFace().failed(error.message, error.hint, error.code)
    return error.code


def _prompt(do: Operations) -> str:
    """The user's own text, if there is one with words in it. Raises StoreUnreadable."""
    from cru.bundled.prompts import INBOX
    from cru.config.regular import read_regular
    from cru.contexts.errors import unreadable

    path = do.home.path / "prompts" / PROMPT
    try:
        return read_regular(path).decode("utf-8", "replace").strip() or INBOX
    except FileNotFoundError:
        return INBOX
    except OSError as error:
        raise unreadable(path, error) from error
