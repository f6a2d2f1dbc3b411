"""Processes that a plugin in Python forks off (`os.fork`): they end where the plugin's code does, so that nothing of cru runs twice."""

from __future__ import annotations

import os
import sys

from cru.core.events.calling import describe_error

_PROCESS = os.getpid()


def leave_if_forked(error: BaseException | None = None) -> None:
    """To be called behind a plugin's code, with what it raised: in a forked process that is the end of the program."""
    if os.getpid() == _PROCESS:
        return
    status = 0 if error is None else 1
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    elif error is not None:
        os.write(
            2, f"cru: a process that a plugin forked off failed: {describe_error(error)}\n".encode("utf-8", "replace")
        )
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 1  # its reader has gone
    os._exit(status & 0xFF)


def _flush() -> None:
    """What waits to be printed is printed once."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # it is told when the process leaves


os.register_at_fork(before=_flush)
