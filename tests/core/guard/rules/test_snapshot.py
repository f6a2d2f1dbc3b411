"""A folder as a whole: what is in its digest, what it may not hold, and that what is used is what was accepted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cru.core.guard import NotAccepted, NotStored
from cru.core.guard.trust import snapshot
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.guard.trust.snapshot import take_snapshot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`plugins` of a project, with a file, a program and a link to another file of the project."""
    folder = tmp_path / "project" / ".cru" / "plugins"
    (folder / "demo" / "lua").mkdir(parents=True)
    (folder / "demo" / "init.lua").write_text("return 1")
    (folder / "demo" / "lua" / "run").write_bytes(b"\x00\xff")
    (folder / "demo" / "lua" / "run").chmod(0o755)
    (tmp_path / "project" / "common.lua").write_text("common")
    (folder / "link.lua").symlink_to("../../common.lua")
    (folder / "demo" / "__pycache__").mkdir()
    (folder / "demo" / "__pycache__" / "x.pyc").write_text("not looked at")
    return folder


def project(folder: Path) -> Path:
    return folder.parents[1]


def test_a_snapshot_holds_every_file_and_its_content(folder: Path) -> None:
    seen = take_snapshot(folder, project(folder))
    assert [(item.kind, item.path, item.content) for item in seen.items] == [
        ("folder", "demo", b""), ("file", "demo/init.lua", b"return 1"), ("folder", "demo/lua", b""),
        ("program", "demo/lua/run", b"\x00\xff"), ("file", "link.lua", b"common"),
    ]  # fmt: skip


CHANGES: dict[str, Callable[[Path], object]] = {
    "a content": lambda folder: (folder / "demo" / "init.lua").write_text("return 2"),
    "a link's target": lambda folder: (project(folder) / "common.lua").write_text("evil"),
    "a new file": lambda folder: (folder / "new.lua").write_text(""),
    "a new folder": lambda folder: (folder / "new").mkdir(),
    "a name": lambda folder: (folder / "demo" / "init.lua").rename(folder / "demo" / "other.lua"),
    "a file less": lambda folder: (folder / "demo" / "init.lua").unlink(),
    "the executable bit": lambda folder: (folder / "demo" / "init.lua").chmod(0o755),
    "the copy": lambda folder: __import__("shutil").rmtree(folder.parents[2] / "home" / "trusted"),
    "the file of trust": lambda folder: (folder.parents[2] / "home" / "trust.json").write_text("{"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_takes_the_trust_away(folder: Path, tmp_path: Path, change: str) -> None:
    trust = TrustStore(tmp_path / "home" / "trust.json")
    assert trust.trusted_copy(folder, project(folder)) is None
    trust.trust_folder(take_snapshot(folder, project(folder)))
    assert trust.trusted_copy(folder, project(folder)) is not None
    CHANGES[change](folder)
    assert trust.trusted_copy(folder, project(folder)) is None
    trust.trust_folder(take_snapshot(folder, project(folder)))
    copy = trust.trusted_copy(folder, project(folder))
    assert copy is not None and len(list(copy.parent.iterdir())) == 1  # copies of before are gone


def test_what_python_makes_anew_takes_no_trust_away_and_is_not_in_the_copy(folder: Path, tmp_path: Path) -> None:
    trust = TrustStore(tmp_path / "home" / "trust.json")
    trust.trust_folder(take_snapshot(folder, project(folder)))
    (folder / "demo" / "__pycache__" / "x.pyc").write_text("changed")
    copy = trust.trusted_copy(folder, project(folder))
    assert copy is not None and not (copy / "demo" / "__pycache__").exists()


def test_the_copy_is_what_was_seen_and_for_the_user_alone(folder: Path, tmp_path: Path) -> None:
    seen = take_snapshot(folder, project(folder))
    (folder / "demo" / "init.lua").write_text("evil")
    trust = TrustStore(tmp_path / "home" / "trust.json")
    trust.trust_folder(seen)
    assert trust.trusted_copy(folder, project(folder)) is None
    (folder / "demo" / "init.lua").write_text("return 1")
    copy = trust.trusted_copy(folder, project(folder))
    assert copy is not None and (copy / "demo" / "init.lua").read_text() == "return 1"
    assert not (copy / "link.lua").is_symlink() and (copy / "link.lua").read_text() == "common"
    assert copy.stat().st_mode & 0o777 == 0o700 and (copy / "demo" / "lua" / "run").stat().st_mode & 0o777 == 0o700
    assert "project-" in str(copy)


def test_a_folder_can_be_forgotten_with_its_copy(folder: Path, tmp_path: Path) -> None:
    trust = TrustStore(tmp_path / "home" / "trust.json")
    assert not trust.revoke(folder)
    trust.trust_folder(take_snapshot(folder, project(folder)))
    assert trust.revoke(folder) and not trust.is_known(folder)
    assert list((tmp_path / "home" / "trusted").iterdir()) == []


def test_a_home_that_cannot_be_written_is_an_error_and_trusts_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    trust = TrustStore(tmp_path / "home" / "trust.json")
    with pytest.raises(NotStored, match="cannot be written"):
        trust.trust_folder(take_snapshot(folder, project(folder)))


def _outside(folder: Path) -> str:
    (folder.parents[2] / "private").mkdir()
    (folder / "out").symlink_to(folder.parents[2] / "private")
    return "out leads out of the project"


def _similar(folder: Path) -> str:
    """A neighbour whose path begins with the project's."""
    (folder.parents[2] / "project-2").write_text("")
    (folder / "out.lua").symlink_to(folder.parents[2] / "project-2")
    return "out.lua leads out of the project"


def _dangling(folder: Path) -> str:
    (folder / "demo" / "gone.lua").symlink_to("nowhere")
    return "demo/gone.lua is a link to nothing"


def _upwards(folder: Path) -> str:
    (folder / "demo" / "up").symlink_to("..")
    return "demo/up leads to a folder that it lies in"


def _two_links(folder: Path) -> str:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    return "a cannot be read: Too many levels of symbolic links"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe.lua")
    return "pipe.lua is neither a file nor a folder"


REFUSED = (_outside, _similar, _dangling, _upwards, _two_links, _pipe)


@pytest.mark.parametrize("make", REFUSED)
def test_what_cannot_be_accepted_is_named(folder: Path, tmp_path: Path, make: Callable[[Path], str]) -> None:
    trust = TrustStore(tmp_path / "home" / "trust.json")
    trust.trust_folder(take_snapshot(folder, project(folder)))
    expected = make(folder)
    with pytest.raises(NotAccepted, match=f"plugins/{expected}"):
        take_snapshot(folder, project(folder))
    with pytest.raises(NotAccepted):
        trust.trusted_copy(folder, project(folder))


def test_a_folder_that_itself_leads_out_of_the_project_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".cru").mkdir(parents=True)
    (other / ".cru" / "plugins").symlink_to(folder)
    trust = TrustStore(tmp_path / "home" / "trust.json")
    trust.trust_folder(take_snapshot(folder, project(folder)))
    with pytest.raises(NotAccepted, match="leads out of the project"):
        trust.trusted_copy(other / ".cru" / "plugins", other)


def test_a_folder_that_is_too_large_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "LIMIT_ITEMS", 4)
    with pytest.raises(NotAccepted, match="is too large") as caught:
        take_snapshot(folder, project(folder))
    assert "4 files" in caught.value.hint
    monkeypatch.setattr(snapshot, "LIMIT_ITEMS", 5)
    monkeypatch.setattr(snapshot, "LIMIT_BYTES", 10)
    with pytest.raises(NotAccepted, match="is too large"):
        take_snapshot(folder, project(folder))
