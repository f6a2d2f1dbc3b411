"""kill -9 at a chosen moment."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.kit.run import Started
from tests.kit.waiting import PATIENCE


def kill_at(run: Started, when: float | Callable[[], bool], timeout: float = PATIENCE) -> bool:
    """Kill the run after `when` seconds, or as soon as `when()` is true (asked every millisecond; about a log file or a server's
    requests). Returns whether it was still alive; AssertionError if the moment never came."""
    begin = time.monotonic()
    due = when if callable(when) else (lambda: time.monotonic() - begin >= when)
    while not due():
        if not run.alive:
            return False
        if time.monotonic() - begin > timeout:
            raise AssertionError(f"the moment did not come within {timeout} s\nout: {run.out}\nerr: {run.err}")
        time.sleep(0.001)
    alive = run.alive
    run.kill()
    run.wait()
    return alive
