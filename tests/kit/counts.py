"""Counts that pytest prints at the end, also over xdist's workers, and a limit on the time of each test.

Counts are summed over the whole run: `docs_block` once for each code block of the docs, `conformance` once for each suite.
A test without the `long` mark that keeps a processor busy for more than LIMIT seconds fails the run; one that only takes long, on a busy
machine perhaps, is named.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from tests.kit.forked import processor_time

LIMIT = 120.0
"""Seconds of a processor, of the test and the programs that it waited for: a guard against what does not end, not a measure of speed.
A slow machine must not reach it."""
LONG = 60.0
"""Seconds on the clock."""
BUSY = "cru seconds of a processor"
NAMES = ("blocks run", "blocks not run", "cases asserted", "cases listed")

_counts = dict.fromkeys(NAMES, 0)


def docs_block(ran: bool) -> None:
    """A code block of the documentation was executed, or stands there unexecuted."""
    _counts["blocks run" if ran else "blocks not run"] += 1


def conformance(asserted: int, listed: int) -> None:
    """A suite asserts so many of the cases that its list has."""
    _counts["cases asserted"] += asserted
    _counts["cases listed"] += listed


class Counts:
    """The plugin; tests/conftest.py registers it."""

    def __init__(self) -> None:
        self.slow: list[str] = []
        self.late: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        before = processor_time()
        try:
            return (yield)
        finally:
            item.user_properties.append((BUSY, processor_time() - before))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or "long" in report.keywords:
            return
        busy = dict(report.user_properties).get(BUSY, 0.0)
        if isinstance(busy, float) and busy > LIMIT:
            limit = f"the limit is {LIMIT:g} s, or mark it `long`"
            self.slow.append(f"{report.nodeid} kept a processor busy for {busy:.1f} s ({limit})")
        elif report.duration > LONG:
            self.late.append(f"{report.nodeid} took {report.duration:.0f} s")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker of xdist has ended: add what it counted."""
        for name, count in getattr(node, "workeroutput", {}).get("cru_counts", {}).items():
            _counts[name] += count

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cru_counts"] = dict(_counts)
        elif self.slow and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.slow:
            terminalreporter.write_line(f"TOO SLOW: {line}", red=True)
        for line in self.late:
            terminalreporter.write_line(f"slow here: {line}")
        run, not_run, asserted, listed = (_counts[name] for name in NAMES)
        if run or not_run:
            terminalreporter.write_line(f"docs blocks run / not run: {run} / {not_run}")
        if asserted or listed:
            terminalreporter.write_line(f"conformance cases asserted / listed: {asserted} / {listed}")
