"""Waiting for what another process or thread does: asked again and again, never slept away."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

PATIENCE = 60.0
"""Seconds: what a busy machine may need for what takes an idle one a moment. Only a failure takes so long."""
INTERVAL = 0.005


def wait_until(ready: Callable[[], object], timeout: float = PATIENCE, what: str = "") -> None:
    """Wait until `ready()` is true; AssertionError if it does not become so."""
    end = time.monotonic() + timeout
    while not ready():
        assert time.monotonic() < end, f"{what or 'it'} did not come within {timeout:g} s"
        time.sleep(INTERVAL)


@contextmanager
def ends_soon() -> Generator[None]:
    """Fail if the block takes longer than PATIENCE. It guards against hanging and measures nothing: what the block must not wait for has
    to take several minutes."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < PATIENCE, f"it took longer than {PATIENCE:g} s"
