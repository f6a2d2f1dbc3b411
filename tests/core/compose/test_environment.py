"""Variables of the environment that are named like a table of settings."""

from __future__ import annotations

import pytest
from tests.kit import HomeDir, cru

from cru.core.compose.start import RARE_SETTINGS


@pytest.mark.parametrize("table", sorted(RARE_SETTINGS.keys() - {"sandbox"}))  # that one is a mode of it
def test_a_variable_cannot_be_a_table_and_breaks_nothing(home: HomeDir, table: str) -> None:
    done = cru("/mode", home=home, env={f"CRU_{table.upper()}": "x"})
    assert done.code == 0 and "Traceback" not in done.err, done.err
