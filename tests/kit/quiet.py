"""What pytest prints where nobody watches: nothing for a test that passes, one whole line for each that does not, what it failed with, and
for a worker that died, which tests it had run.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict, deque
from typing import Any

import pytest

REMEMBERED = 5
"""Tests of a worker, the last of which is the likeliest to have left what ended it."""
PHASES = ("setup", "call", "teardown")
"""Of a test; xdist reports one that a worker died of in none of them."""
COLUMNS = "240"
"""Wide enough for a test's name and the first line of its failure."""


class Quiet:
    """The plugin; tests/conftest.py registers it."""

    def __init__(self) -> None:
        self._watched = sys.stdout.isatty()
        self._ran: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self.deaths: list[str] = []
        if not self._watched:
            os.environ.setdefault("COLUMNS", COLUMNS)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        if self._watched or report.when != "call" or not report.passed:
            return None
        return "passed", "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node = getattr(report, "node", None)  # of xdist's controller: the worker that it comes from
        if node is None or report.when not in PHASES:
            return
        if report.nodeid not in (ran := self._ran[node.gateway.id]):
            ran.append(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            ran = ", ".join(reversed(self._ran[node.gateway.id])) or "none"
            self.deaths.append(
                f"worker {node.gateway.id} died ({error}); before that it had run, the last one first: {ran}"
            )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.deaths:
            terminalreporter.write_line(f"DEAD: {line}", red=True)
