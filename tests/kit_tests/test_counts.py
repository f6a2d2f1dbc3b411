"""Counts are printed at the end, over workers too, and a slow test fails the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import counts

ROOT = Path(counts.__file__).parent.parent.parent
CONFTEST = """
from tests.kit import counts
def pytest_configure(config):
    counts.LIMIT = counts.LONG = 0.05
    config.pluginmanager.register(counts.Counts(), "cru-counts")
"""
TESTS = """
import time
from tests.kit import conformance, docs_block
def test_a():
    docs_block(True); conformance(3, 4)
def test_b():
    docs_block(False); docs_block(True); conformance(1, 1)
"""
SLOW = "import pytest, time\n{mark}\ndef test_slow():\n    end = time.process_time() + 0.2\n    while time.process_time() < end: pass\n"


def run(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_x.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", *options]
    return subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_counts_are_summed(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, TESTS, *options)
    assert done.returncode == 0, done.stdout
    assert "docs blocks run / not run: 2 / 1" in done.stdout
    assert "conformance cases asserted / listed: 4 / 5" in done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_a_slow_test_fails_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, SLOW.format(mark=""), *options)
    assert done.returncode == 1 and "TOO SLOW: test_x.py::test_slow kept a processor busy for 0.2" in done.stdout


def test_one_that_only_waits_is_named_and_fails_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "import time\ndef test_waits():\n    time.sleep(0.1)\n")
    assert done.returncode == 0 and "slow here: test_x.py::test_waits took 0 s" in done.stdout


def test_a_test_marked_long_may_be_slow(tmp_path: Path) -> None:
    assert run(tmp_path, SLOW.format(mark="@pytest.mark.long")).returncode == 0
