"""Which cells of the road table run every time: the roads that differ most. The rest is `long`."""

from __future__ import annotations

import pytest

EVERY_TIME = {
    "lua": None, "python": ("argv", "chat", "queue", "continuation", "cru.tools.call"),
    "crush": ("argv",), "claude": ("argv",), "toy": ("argv",),
    "program": ("argv",), "codex": ("argv",), "gemini": ("argv",), "cru": ("argv",),
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        cell = getattr(getattr(item, "callspec", None), "params", {})
        if "road" not in cell or "dialect" not in cell:
            continue
        roads = EVERY_TIME[cell["dialect"]]
        if roads is not None and cell["road"] not in roads:
            item.add_marker(pytest.mark.long)
