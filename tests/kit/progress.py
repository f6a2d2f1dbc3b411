"""What a run of many tests shows while it goes on and at its end.

While it goes on: how many tests have ended, on one line of a terminal, or as a line for each tenth of them; and the name of each test that
fails, when it fails. At the end: which tests a worker of xdist had run before it died, and one line that says how many passed, failed and
were skipped, and why they were skipped.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, defaultdict, deque
from typing import Any

import pytest

LEAST = 200
"""Tests of a run that shows its progress; fewer end soon."""
STEPS = 10
REMEMBERED = 5
"""Tests of a worker that died; the last of them is the most likely to have left what ended it."""
PHASES = ("setup", "call", "teardown")
"""Of a test; xdist reports the test during which a worker died in none of them."""
COLUMNS = "240"
"""Wide enough for a test's name and the first line of its failure, where the output is no terminal."""


class Progress:
    """The plugin; tests/conftest.py registers it in the process that prints."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._began = time.time()
        self._total = self._ended = self._shown = 0
        self._outcomes: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._reporter: Any = None
        self._ran: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._deaths: list[str] = []
        if not self._is_terminal:
            os.environ.setdefault("COLUMNS", COLUMNS)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._reporter = session.config.pluginmanager.get_plugin("terminalreporter")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._total = self._total or len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        self._total = len(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count a passed test without a letter for it, and one that does not pass with a line or nothing."""
        if hasattr(report, "wasxfail") or (report.when != "call" and report.passed):
            return None
        category = "error" if report.failed and report.when in ("setup", "teardown") else report.outcome
        return category, "", category.upper()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        node = getattr(report, "node", None)  # the worker of xdist that ran it
        if node is not None and report.when in PHASES and report.nodeid not in (ran := self._ran[node.gateway.id]):
            ran.append(report.nodeid)
        if report.when != "call" and report.passed:
            return
        self._outcomes[report.outcome] += 1
        if report.skipped:
            self._reasons[_reason(report)] += 1
        if report.failed:
            self._write_line(f"{'ERROR' if report.when in ('setup', 'teardown') else 'FAILED'} {report.nodeid}")
        if report.when == "call" or not report.failed:
            self._ended += 1
            self._show()

    def _show(self) -> None:
        if self._total < LEAST:
            return
        step = self._ended * (100 if self._is_terminal else STEPS) // self._total
        if step == self._shown:
            return
        self._shown = step
        failed = f", {self._outcomes['failed']} failed" if self._outcomes["failed"] else ""
        text = f"{self._ended:,} of {self._total:,} tests{failed}, {time.time() - self._began:.0f} s"
        if self._is_terminal:
            self._reporter.write(f"\r{text}\033[K", flush=True)
        else:
            self._reporter.write_line(text)

    def _write_line(self, text: str) -> None:
        if self._is_terminal and self._shown:
            self._reporter.write("\r\033[K")
        self._reporter.write_line(text)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            ran = ", ".join(reversed(self._ran[node.gateway.id])) or "none"
            text = f"worker {node.gateway.id} died ({error}); before that it had run, the last one first: {ran}"
            self._deaths.append(text)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._deaths:
            terminalreporter.write_line(f"DEAD: {line}", red=True)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print the last line, below what pytest prints."""
        if self._ended < LEAST or self._reporter is None:
            return
        why = ", ".join(f"{count} {reason}" for reason, count in self._reasons.most_common())
        counts = ", ".join(f"{self._outcomes[name]:,} {name}" for name in ("passed", "failed", "skipped"))
        self._reporter.write_line(f"{counts}{f' ({why})' if why else ''} in {time.time() - self._began:.0f} s")


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
