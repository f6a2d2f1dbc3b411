"""Tests that confine commands, where nothing does: all are skipped at one place, which pytest reports in one line."""

from __future__ import annotations

import asyncio
import os
from functools import cache

import pytest

from cru.sandbox.backends import backend_path
from cru.sandbox.detect import detect

needs_sandbox = pytest.mark.needs_sandbox


@cache
def why_unconfined() -> str:
    """Return why nothing confines here; "" if something does."""
    detection = asyncio.run(detect({"PATH": backend_path(os.environ)}))
    return "" if detection.backend else detection.why


class SandboxTests:
    """A plugin of pytest: skips tests marked `needs_sandbox` where there is none."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.get_closest_marker("needs_sandbox") is not None and (why := why_unconfined()):
            pytest.skip(f"no sandbox here: {why}")
