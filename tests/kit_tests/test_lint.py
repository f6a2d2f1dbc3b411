"""`make lint` runs every check and names those that failed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKS = (
    "ruff check .", "ruff format --check .", "python -m tests.kit.limits",
    "python -m tests.kit.program_facts --check", "python -m tests.kit.docs --check", "mypy",
    "lint-imports --no-cache",
)  # fmt: skip


@pytest.mark.parametrize("failing", [(), CHECKS[:1], CHECKS[1:2], CHECKS[5:6], CHECKS], ids=len)
def test_a_check_that_fails_keeps_no_other_from_running(tmp_path: Path, failing: tuple[str, ...]) -> None:
    bin_folder, log = tmp_path / "bin", tmp_path / "log"
    bin_folder.mkdir()
    cases = "".join(f'"{check}") exit 1 ;;\n' for check in failing)
    for name in {check.partition(" ")[0] for check in CHECKS}:
        script = bin_folder / name
        script.write_text(
            f'#!/bin/sh\nran="$(basename "$0")${{1:+ $*}}"\necho "$ran" >> {log}\ncase "$ran" in\n{cases}esac\n'
        )
        script.chmod(0o755)
    (tmp_path / ".installed").touch()
    done = subprocess.run(["make", "lint", f"VENV={tmp_path}"], cwd=ROOT, capture_output=True, text=True)
    assert log.read_text().splitlines() == list(CHECKS)
    assert (done.returncode == 0) == (failing == ())
    assert [f"  {bin_folder}/{check}" in done.stderr.splitlines() for check in CHECKS] == [
        check in failing for check in CHECKS
    ]
    assert ("ruff format .`" in done.stderr) == (CHECKS[1] in failing)
