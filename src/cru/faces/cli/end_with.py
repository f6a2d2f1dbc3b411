"""A run that ends with the program that started it (CRU_END_WITH): no run goes on for a worker that was killed."""

from __future__ import annotations

import os
import select
import signal
import threading
import time

VARIABLE = "CRU_END_WITH"
LOOK_SECONDS = 0.5
"""Between two looks, where the system does not tell of the end of a process."""


def end_with_parent() -> None:
    """Take the variable from the environment; if it names this process' parent, SIGTERM comes once that is gone, or at once."""
    text = os.environ.pop(VARIABLE, "")
    if text.isdecimal() and len(text) < 10:
        threading.Thread(target=_watch, args=(int(text),), name="end with parent", daemon=True).start()


def _watch(parent: int) -> None:
    descriptor = _open(parent)
    if descriptor >= 0:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if os.getppid() == parent:  # else it went before this
            poll.poll()
        os.close(descriptor)
    else:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _open(pid: int) -> int:
    """A descriptor that becomes readable when the process ends; -1 if there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
