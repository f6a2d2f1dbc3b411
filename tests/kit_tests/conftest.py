"""The tests of the test kit are slow, but for the budget of a tool call and the links of the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
OF_THE_PRODUCT = ("test_footprint.py", "test_links.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and item.path.name not in OF_THE_PRODUCT:
            item.add_marker(pytest.mark.slow)
