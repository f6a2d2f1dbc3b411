"""JSON files that are read and changed as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.base.files import decode_json, json_file
from cru.core.base.files.json_file import DamagedFile, load_json, update_json


def decode(content: bytes) -> list[int]:
    return decode_json(content, list[int])


def test_a_missing_file_holds_nothing(tmp_path: Path) -> None:
    assert load_json(tmp_path / "a.json", decode) is None


def test_a_file_is_made_private_with_its_folder_and_left_alone_without_a_change(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.json"
    update_json(path, lambda: b"[1]")
    assert (load_json(path, decode), path.stat().st_mode & 0o777) == ([1], 0o600)
    before = path.stat()
    update_json(path, lambda: None)
    after = path.stat()  # without the time of the last access, which a look may change
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_kept_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"not understood: .*; kept as ") as caught:
        load_json(path, decode)
    assert caught.value.content == content == (tmp_path / "a.json.corrupt-1").read_bytes()
    assert caught.value.is_kept and not path.exists()


def test_a_damaged_file_that_cannot_be_moved_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, suffix: str) -> Path:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(json_file, "set_aside", refuse)
    path = tmp_path / "a.json"
    path.write_bytes(b"{")
    with pytest.raises(DamagedFile, match="cannot be kept aside: Read-only file system") as caught:
        load_json(path, decode)
    assert not caught.value.is_kept and path.read_bytes() == b"{"
