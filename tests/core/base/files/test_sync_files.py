"""Files that are synced together, before the log says that they were written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cru.core.base.files import unsynced
from cru.core.base.files.atomic import replace_file, sync_files
from cru.features.mcp.tools import FileSaver


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are synced, in their order; a path that ends in `bad` fails."""
    paths: list[str] = []

    def fsync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        paths.append(path)
        if path.endswith("bad"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    unsynced.clear()
    monkeypatch.setattr(os, "fsync", fsync)
    return paths


def make(folder: Path, *names: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(name)
    paths = [str(folder / name) for name in names]
    unsynced.update(paths)
    return paths


def test_files_come_before_their_folders_and_each_folder_once(tmp_path: Path, synced: list[str]) -> None:
    files = [*make(tmp_path / "x", "a", "b"), *make(tmp_path / "y", "c")]
    sync_files()
    assert synced == [*files, str(tmp_path / "x"), str(tmp_path / "y")] and not unsynced
    sync_files()
    assert len(synced) == 5


@pytest.mark.parametrize("what", ["removed", "a link", "a pipe", "its folder removed", "not readable"])
def test_what_became_of_a_file_meanwhile_fails_nothing(tmp_path: Path, synced: list[str], what: str) -> None:
    folder = tmp_path / "x"
    (file,) = map(Path, make(folder, "a"))
    outside = tmp_path / "outside"
    outside.write_text("")
    match what:
        case "not readable":
            file.chmod(0)  # root may read it all the same
        case _:
            file.unlink()
    match what:
        case "a link":
            file.symlink_to(outside)
        case "a pipe":
            os.mkfifo(file)
        case "its folder removed":
            folder.rmdir()
    sync_files()
    assert str(outside) not in synced and not unsynced
    assert (str(folder) in synced) == folder.exists()


def test_an_error_names_the_file_and_leaves_the_others_for_the_next_time(tmp_path: Path, synced: list[str]) -> None:
    make(tmp_path, "a", "bad", "c")
    with pytest.raises(OSError, match="Input/output error") as caught:
        sync_files()
    assert caught.value.filename == str(tmp_path / "bad") and str(tmp_path / "c") not in synced
    sync_files()
    assert synced.count(str(tmp_path / "c")) == 1 and str(tmp_path) in synced and not unsynced


def test_what_a_server_sent_is_synced_with_the_log(tmp_path: Path, synced: list[str]) -> None:
    saved = FileSaver(tmp_path, "call_1")(b"picture", ".png")
    sync_files()
    assert str(saved) in synced


def test_a_file_that_no_rename_can_replace_is_synced_too(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))  # as of a file that is mounted on its own

    (path,) = map(Path, make(tmp_path, "a"))
    monkeypatch.setattr(os, "replace", refuse)
    replace_file(path, b"new", in_place=True)
    assert path.read_bytes() == b"new" and synced[-2:] == [str(path), str(tmp_path)]
