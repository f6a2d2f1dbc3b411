"""Files replaced whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cru.core.base.files.atomic import replace_file


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_name_there_can_be_is_replaced_too(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127)
    path.write_bytes(b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_refused_where_nobody_may_choose_what_is_written_to(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        replace_file(link, b"new", follow=False)
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize(("keep_mode", "mode"), [(True, 0o644), (False, 0o600)])
def test_an_existing_file_keeps_its_mode_or_becomes_private(tmp_path: Path, keep_mode: bool, mode: int) -> None:
    path = tmp_path / "notes.md"
    path.write_text("old")
    path.chmod(0o644)
    replace_file(path, b"new", keep_mode=keep_mode)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_link_to_what_is_no_file_is_not_followed(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """Root could replace /dev/zero like this."""
    make(tmp_path / "target")
    (tmp_path / "link").symlink_to("target")
    before = (tmp_path / "target").stat()
    with pytest.raises(OSError, match="not a regular file"):
        replace_file(tmp_path / "link", b"x")
    after = (tmp_path / "target").stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
