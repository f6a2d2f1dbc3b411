"""A folder that goes with its process goes whole, and takes nothing else along."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cru.core.conversations.private import HeldFolder, sweep


def furnish(folder: Path, outside: Path) -> None:
    """Deeper than Python may call itself, closed folders, links to what is not in it."""
    outside.mkdir()
    outside.chmod(0o755)
    (outside / "kept").write_text("kept")
    for name in ("link", "in/link"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(outside)
    (folder / "in" / "file").write_text("x")
    (folder / "in" / "closed" / "more").mkdir(parents=True)
    here = os.open(folder, os.O_RDONLY)
    try:
        for _ in range(1500):
            os.mkdir("a", dir_fd=here)
            inner = os.open("a", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
    finally:
        os.close(here)
    (folder / "in" / "closed" / "more").chmod(0)
    (folder / "in" / "closed").chmod(0)


def test_all_of_it_is_removed_and_nothing_else(tmp_path: Path) -> None:
    held = HeldFolder([str(tmp_path / "parent")])
    furnish(held.path, tmp_path / "outside")
    assert held.remove() == ""
    assert not (tmp_path / "parent").exists()
    assert (tmp_path / "outside" / "kept").read_text() == "kept"
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o755


def test_what_a_kill_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir(mode=0o700)
    (parent / "run-x").mkdir()
    furnish(parent / "run-x", tmp_path / "outside")
    sweep(str(parent))
    assert not parent.exists()
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o755 and (tmp_path / "outside" / "kept").exists()


def test_it_stays_for_a_process_that_lives(tmp_path: Path) -> None:
    held = HeldFolder([str(tmp_path / "parent")])
    held.keep_for(os.getpid())
    assert held.remove() == ""
    sweep(str(tmp_path / "parent"))
    assert held.path.is_dir()
    (held.path / ".kept").write_text(f"{os.getpid()} another\n")
    sweep(str(tmp_path / "parent"))
    assert not (tmp_path / "parent").exists()
