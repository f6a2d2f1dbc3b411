"""200 kills -9 over scripted turns of the real command (bench/kills.py says what is checked after each)."""

from __future__ import annotations

import pytest
from bench.kills import STATES, run


@pytest.mark.long
def test_no_kill_loses_anything(capsys: pytest.CaptureFixture[str]) -> None:
    hits, problems = run(200)
    with capsys.disabled():
        print(f"\nkills by state: {dict(hits)}")
    assert problems == []
    assert all(hits[state] for state in STATES), hits
