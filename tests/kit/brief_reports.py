"""What a worker of xdist tells of a test that passes: one report. The other messages (that it begins, that its fixtures are set up and
gone, that it ends) cost the controller as much time as all else that it does, and nobody reads them.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


def _is_read(report: pytest.TestReport) -> bool:
    return report.when == "call" or not report.passed


class BriefReports:
    """The plugin; tests/conftest.py registers it. `--durations` and a report in XML read all of them, and get them."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        config = item.config
        is_worker = hasattr(config, "workerinput")
        if not is_worker or config.getoption("durations") is not None or config.getoption("xmlpath", None):
            return None
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if _is_read(report):
                item.ihook.pytest_runtest_logreport(report=report)
        return True
