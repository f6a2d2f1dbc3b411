"""What hooks saw and did in the programs that they were written for, played to cru (tests/data/differential)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit.differential.cases import Case, Table, cases
from tests.kit.differential.compare import differences
from tests.kit.differential.play_cru import play

ALL = {f"{table.dialect}-{case.id}": (table, case) for table, case in cases()}


@pytest.mark.sample(24)
@pytest.mark.parametrize(("table", "case"), ALL.values(), ids=ALL)
def test_cru_does_what_is_recorded(table: Table, case: Case, tmp_path: Path) -> None:
    shown = play(case, table.dialect, tmp_path)
    assert differences(case.expect_of_cru, shown) == [], case.about
