"""Which cases run every time where each one starts whole runs of `cru`; `make test-long` runs them all."""

from __future__ import annotations

from collections import Counter

import pytest

SLOW = (
    "tests/faces/", "tests/programs/", "tests/extensions/executables/", "tests/engine/test_compaction_",
    "tests/extensions/hooks/test_answers_hold", "tests/extensions/hooks/test_hostile", "tests/extensions/hooks/test_inside",
    "tests/extensions/hooks/test_crush_turns",
)  # fmt: skip
WHOLE = ("tests/programs/test_acceptance_chibi", "tests/programs/test_acceptance_runs")
EVERY = 4
"""Of a test with many cases the first one runs, and each fourth after it."""


class Sampling:
    """A plugin of pytest: marks the other cases `long`."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        seen: Counter[str] = Counter()
        for item in items:
            test, is_case, _ = item.nodeid.partition("[")
            if not is_case or not test.startswith(SLOW) or test.startswith(WHOLE):
                continue
            if seen[test] % EVERY:
                item.add_marker(pytest.mark.long)
            seen[test] += 1
