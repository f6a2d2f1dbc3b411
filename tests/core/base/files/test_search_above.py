"""An entry in a folder or above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.base.files.search_path import exists_above


@pytest.mark.parametrize(
    ("folder", "found"),
    [("a", True), ("a/b", True), ("a/b/c", True), ("", False), ("other", False), ("ab", False)],
)
def test_it_is_looked_for_up_to_the_root(tmp_path: Path, folder: str, found: bool) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / ".mark").mkdir()
    assert exists_above(str(tmp_path / folder), ".mark") is found


def test_the_root_is_looked_at_too() -> None:
    assert exists_above("/", "etc") and exists_above("/no/such/folder", "etc")
    assert not exists_above("/", "no-such-entry")


def test_a_link_is_followed_first(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / ".mark").mkdir()
    (tmp_path / "link").symlink_to("a/b")
    assert exists_above(str(tmp_path / "link"), ".mark")
