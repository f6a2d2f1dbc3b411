"""Relay, the dialect of tests/programs/sixth_dialect/, among those of cru in this process."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from cru.core.hooks import dialects

FOLDER = Path(__file__).parents[1] / "programs" / "sixth_dialect"


def add_relay(patch: pytest.MonkeyPatch) -> None:
    """Add Relay's row to the table of dialects until the test is over."""
    patch.setattr(dialects, "__path__", [*dialects.__path__, str(FOLDER)])
    relay = import_module(f"{dialects.__name__}.relay")
    patch.setitem(dialects.FOOTPRINTS, "relay", relay.FOOTPRINT)
