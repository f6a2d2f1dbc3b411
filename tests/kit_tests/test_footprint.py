"""How much code a hooked tool call and a plain run cross may shrink, and not grow unseen."""

from __future__ import annotations

import pytest
from tests.kit import HomeDir
from tests.kit.footprint import Setting, measure
from tests.kit.sandbox import needs_sandbox

LIMITS = [
    pytest.param(Setting.BARE, 51, 224, id="a call"),
    pytest.param(Setting.USUAL, 94, 452, id="a call as people have it", marks=needs_sandbox),
    pytest.param(Setting.ANSWER, 77, 622, id="a run"),
]
"""Files and functions. The aim is 70 and 280 for a call as people have it, 60 and 450 for a run."""


@pytest.mark.parametrize(("setting", "files", "functions"), LIMITS)
def test_few_files_and_functions_are_crossed(home: HomeDir, setting: Setting, files: int, functions: int) -> None:
    footprint = measure(home, setting)
    crossed = {file for file, _ in footprint.functions}
    assert "core/events/chain.py" in crossed and ("core/tools/shell.py" in crossed) is (setting is not Setting.ANSWER)
    assert len(crossed) <= files, sorted(crossed)
    assert len(footprint.functions) <= functions, footprint.functions
