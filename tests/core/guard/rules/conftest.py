"""The fixture that this room's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.guard.rules.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
