"""Tests that confine commands or mount a disk of their own, where neither is possible: skipped at one place, reported in one line."""

from __future__ import annotations

import asyncio
import os
import subprocess
from functools import cache

import pytest

from cru.core.guard.sandbox.backends import backend_path
from cru.core.guard.sandbox.detect import detect

needs_sandbox = pytest.mark.needs_sandbox
needs_mounts = pytest.mark.needs_mounts


@cache
def why_unconfined() -> str:
    """Return why nothing confines here; "" if something does."""
    detection = asyncio.run(detect({"PATH": backend_path(os.environ)}))
    return "" if detection.backend else detection.why


@cache
def may_mount() -> bool:
    """Return whether a process may have mounts of its own: root may, but not in an ordinary container."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


class SandboxTests:
    """A plugin of pytest: skips tests marked `needs_sandbox` and `needs_mounts` where there is none."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.get_closest_marker("needs_sandbox") is not None and (why := why_unconfined()):
            pytest.skip(f"no sandbox here: {why}")
        if item.get_closest_marker("needs_mounts") is not None and not may_mount():
            pytest.skip("nothing may be mounted here")
