"""`--no-session`: a run whose context stands in a folder of its own, which goes with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

from cru.core.conversations.private import PrivateFolder
from cru.faces.cli.console import say
from cru.faces.cli.event_loop import ENDING, LAST_ACTS
from cru.faces.cli.flags import Flag, Parsed, UsageProblem

NAME = "no-session"
"""Of the only context that there is."""
FITTING = ("transient-username", "plugin", "call-tool")
"""Operations that leave nothing in a context; all others are about one that is kept."""
OPTIONS = ("resume", "idempotency-key", "debug")
"""Options that need one that is kept."""


def run_private(parsed: Parsed, run: Callable[[Parsed], int]) -> int:
    """The exit status of `run` in a folder that is gone afterwards. Raises UsageProblem, StoreUnwritable."""
    _check(parsed)
    folder = PrivateFolder(os.environ)
    _remove_at_signals(folder)
    LAST_ACTS.append(folder.remove)
    parsed.private = os.fspath(folder.home)
    try:
        return run(parsed)
    finally:
        if problem := folder.remove():
            say(f"cru: {problem}")


def _check(parsed: Parsed) -> None:
    """Raises UsageProblem for flags about a context that is kept."""

    def fits(flag: Flag) -> bool:
        return flag.name in FITTING if flag.kind == "op" else flag.name not in OPTIONS

    wrong = next((flag for flag, _ in parsed.flags if not fits(flag)), None)
    if wrong is not None:
        raise UsageProblem(
            f"{wrong.short or wrong.long} does not go with --no-session, which has no context to keep",
            "leave one of them out",
        )


def _remove_at_signals(folder: PrivateFolder) -> None:
    """Until the event loop hears them. Nothing is raised: see main.py."""

    def end(number: int, _frame: FrameType | None) -> None:
        folder.remove()
        if number == signal.SIGINT:
            os.write(2, b"cru: interrupted\n")
        os._exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
