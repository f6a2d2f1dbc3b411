"""Many processes in one home (bench/homes.py says what is checked)."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.homes import run


@pytest.mark.long
def test_processes_on_contexts_of_one_home_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workers, problems = run(4, 120, tmp_path, most=5)
    with capsys.disabled():
        print(f"\nruns: {[worker.runs for worker in workers]}")
    assert problems == []
    assert [worker.runs for worker in workers] == [5] * 4
