"""fs and paths: real files below the project root."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room

from cru.core.api import fs, paths
from cru.core.api.host import BadArgument, NamespaceError, Values
from cru.features.vault.api import kiln


def test_files_are_written_read_and_appended_below_the_project_root(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(fs.write, "notes/today.md", "hello\r\n")
    assert (room.root / "notes" / "today.md").read_bytes() == b"hello\r\n"
    room(fs.append, "notes/today.md", "é")
    assert room(fs.read, "notes/today.md") == "hello\r\né"
    room(fs.append, "new/log.txt", "x")
    assert room(fs.read, str(room.root / "new" / "log.txt")) == "x"


def test_bytes_that_are_no_text_survive_reading_and_writing(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (room.root / "a.bin").write_bytes(bytes(range(256)))
    room(fs.write, "b.bin", room(fs.read, "a.bin"))
    assert (room.root / "b.bin").read_bytes() == bytes(range(256))


@pytest.mark.parametrize("path", ["missing", "no/such/folder/file", "file/below"])
def test_reading_a_missing_file_gives_nil_and_a_message(tmp_path: Path, path: str) -> None:
    room = Room(tmp_path)
    (room.root / "file").write_text("x")
    found = room(fs.read, path)
    assert isinstance(found, Values)
    assert found[0] is None
    assert path in found[1]


FAILS: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (fs.read, ("folder",), r"fs\.read folder: Is a directory"),
    (fs.write, ("folder", "x"), r"fs\.write folder: Is a directory"),
    (fs.write, ("file/below", "x"), r"fs\.write file/below: "),
    (fs.mkdir, ("file",), r"fs\.mkdir file: File exists"),
    (fs.remove, ("missing",), r"fs\.remove missing: No such file"),
    (fs.list_, ("missing",), r"fs\.list missing: No such file"),
    (fs.list_, ("file",), r"fs\.list file: Not a directory"),
    (fs.copy, ("missing", "b"), r"fs\.copy missing|copy to b"),
    (fs.rename, ("missing", "b"), r"fs\.rename"),
    (fs.read, ("a\0b",), r"fs\.read 'a\\x00b'"),
]


@pytest.mark.parametrize(("function", "args", "message"), FAILS)
def test_a_failure_raises_with_operation_and_path(
    tmp_path: Path, function: Callable[..., Any], args: tuple[Any, ...], message: str
) -> None:
    room = Room(tmp_path)
    (room.root / "folder").mkdir()
    (room.root / "file").write_text("x")
    with pytest.raises(NamespaceError, match=message):
        room(function, *args)


@pytest.mark.parametrize("path", [None, 1, {}])
def test_a_path_must_be_a_string(tmp_path: Path, path: Any) -> None:
    for function in (fs.read, fs.exists, fs.list_, fs.remove, fs.mkdir):
        with pytest.raises(BadArgument, match=r"cru\.fs\..*path must be a string"):
            Room(tmp_path)(function, path)
    with pytest.raises(BadArgument, match="content must be a string"):
        Room(tmp_path)(fs.write, "x", path)


def test_files_and_folders_are_told_apart(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(fs.mkdir, "a/b/c")
    room(fs.mkdir, "a/b/c")
    room(fs.write, "a/f", "")
    assert [room(f, "a/b") for f in (fs.exists, fs.is_file, fs.is_dir)] == [True, False, True]
    assert [room(f, "a/f") for f in (fs.exists, fs.is_file, fs.is_dir)] == [True, True, False]
    assert [room(f, "nope") for f in (fs.exists, fs.is_file, fs.is_dir)] == [False, False, False]
    assert room(fs.list_, "a") == ["b", "f"]
    assert room(fs.list_, "a/b/c") == []


def test_remove_takes_folders_whole_and_links_alone(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(fs.write, "kept/f", "x")
    room(fs.write, "gone/deep/f", "x")
    os.symlink(room.root / "kept", room.root / "gone" / "link")
    os.symlink(room.root / "kept", room.root / "link")
    room(fs.remove, "gone")
    room(fs.remove, "link")
    room(fs.remove, "kept/f")
    assert room(fs.list_, ".") == ["kept"]


def test_copy_and_rename(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(fs.write, "a", "1")
    room(fs.write, "b", "2")
    room(fs.copy, "a", "c")
    room(fs.rename, "a", "b")
    assert room(fs.list_, ".") == ["b", "c"]
    assert room(fs.read, "b") == "1"


def test_paths_name_the_places_of_the_session(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room(paths.session) == str(tmp_path / "home" / "contexts" / "main")
    assert room(paths.workspace) == str(room.root)
    with pytest.raises(NamespaceError, match="kiln path not configured"):
        room(kiln)
    folder = room(paths.state, "todo-list")
    assert folder == str(tmp_path / "home" / "plugin-state" / "todo-list")
    assert Path(folder).is_dir()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\\b", "a\0", "x" * 201, None, 1])
def test_the_state_folder_of_a_plugin_needs_one_plain_name(tmp_path: Path, name: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.paths\.state"):
        Room(tmp_path)(paths.state, name)
    assert not (tmp_path / "home" / "plugin-state").exists()


JOIN: list[tuple[tuple[str, ...], str]] = [
    (("a", "b", "c.md"), "a/b/c.md"),
    (("a/", "b"), "a/b"),
    (("a", "/b", "c"), "/b/c"),
    ((), ""),
]


@pytest.mark.parametrize(("parts", "path"), JOIN)
def test_join_starts_anew_at_an_absolute_part(parts: tuple[str, ...], path: str) -> None:
    assert paths.join(*parts) == path


def test_pipes_devices_and_huge_files_are_refused(tmp_path: Path) -> None:
    room = Room(tmp_path)
    os.mkfifo(room.root / "pipe")
    with (room.root / "huge").open("wb") as file:
        file.truncate(5 << 30)
    calls: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
        (fs.read, ("/dev/zero",)),
        (fs.read, ("pipe",)),
        (fs.write, ("pipe", "x")),
        (fs.append, ("pipe", "x")),
        (fs.copy, ("/dev/zero", "copy")),
    ]
    for function, args in calls:
        with pytest.raises(NamespaceError, match="it is not a regular file"):
            room(function, *args)
    with pytest.raises(NamespaceError, match="it is larger than 64 MiB"):
        room(fs.read, "huge")
    assert not (room.root / "copy").exists()
