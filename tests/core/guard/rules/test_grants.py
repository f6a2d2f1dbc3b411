"""Where answers are kept: a file that cannot be looked at may hold rules that deny."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.guard.rules.grants import Grants


def test_a_file_that_does_not_exist_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "grants.json", tmp_path / "file" / "grants.json"):
        lists = Grants(path, tmp_path).lists()
        assert not lists.deny and not lists.ask and not lists.allow


def test_one_that_cannot_be_looked_at_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        Grants(tmp_path / ("x" * 300), tmp_path).lists()
