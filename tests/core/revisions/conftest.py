"""A umask of its own: git knows whether a file can be executed, and what else a file's mode was is guessed from the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cru.core.revisions import commands


@pytest.fixture(autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the umask of the test's parameter, else 022, and return it."""
    number: int = getattr(request, "param", 0o022)
    before = os.umask(number)
    commands.withheld.cache_clear()
    yield number
    os.umask(before)
    commands.withheld.cache_clear()
