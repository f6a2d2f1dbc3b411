from __future__ import annotations

import stat
from pathlib import Path

from tests.core.tools.box import Box

from cru.core.tools.output import is_too_long, save_output
from cru.core.tools.protocol import DOCS, ToolSettings

SETTINGS = ToolSettings(tool_output_cache_threshold=100, tool_cache_preview_chars=20)


def _saved(folder: Path) -> list[Path]:
    return sorted((folder / "tool_cache").iterdir())


def test_only_what_is_longer_than_the_threshold_is_saved() -> None:
    assert not is_too_long("x" * 100, SETTINGS)
    assert is_too_long("x" * 101, SETTINGS)


def test_the_stub_tells_where_the_output_is_and_not_to_run_the_tool_again(tmp_path: Path) -> None:
    content = "".join(f"line {i}\n" for i in range(500))
    stub, _ = save_output(tmp_path, "call_1", "bash", content, SETTINGS, None)
    (file,) = _saved(tmp_path)
    assert file.read_text() == content
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert str(file) in stub.splitlines()
    assert f"{len(content):,} characters, 500 lines" in stub
    assert "Do not call `bash` again" in stub
    assert "`read`" in stub and "`grep`" in stub


def test_the_preview_ends_at_a_line_end(tmp_path: Path) -> None:
    stub, _ = save_output(tmp_path, "c", "bash", "first line\nsecond line\n" * 50, SETTINGS, None)
    assert "It begins:\nfirst line\n[…" in stub
    assert "second" not in stub


def test_a_preview_without_a_line_end_is_cut(tmp_path: Path) -> None:
    stub, _ = save_output(tmp_path, "c", "bash", "é" * 500, SETTINGS, None)
    assert "It begins:\n" + "é" * 20 + "\n[… 480 more characters in the file]" in stub


def test_a_summary_takes_the_place_of_the_preview(tmp_path: Path) -> None:
    stub, _ = save_output(tmp_path, "c", "bash", "secret\n" * 50, SETTINGS, "all good")
    assert stub.endswith("Summary:\nall good")
    assert "secret" not in stub


def test_a_call_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    save_output(tmp_path / "context", "../../etc/passwd\0" + "x" * 500, "b/sh", "x" * 500, SETTINGS, None)
    (file,) = _saved(tmp_path / "context")
    assert file.name.startswith("b_sh_______etc_passwd_")
    assert len(file.name) < 120


def test_a_call_id_used_twice_keeps_both_files(tmp_path: Path) -> None:
    for text in ("a" * 500, "b" * 500):
        save_output(tmp_path, "call_1", "bash", text, SETTINGS, None)
    assert [file.read_text()[0] for file in _saved(tmp_path)] == ["b", "a"]
    assert [file.name for file in _saved(tmp_path)] == ["bash_call_1-2.txt", "bash_call_1.txt"]


def test_half_a_surrogate_pair_does_not_stop_it(tmp_path: Path) -> None:
    save_output(tmp_path, "c", "bash", "\ud800" * 500, SETTINGS, None)
    assert _saved(tmp_path)[0].read_text() == "?" * 500


def test_what_cannot_be_saved_is_still_previewed(tmp_path: Path) -> None:
    (tmp_path / "tool_cache").write_text("a file where the folder should be")
    stub, _ = save_output(tmp_path, "c", "bash", "one\n" * 500, SETTINGS, None)
    assert "could not be saved: File exists" in stub
    assert "one" in stub


def test_reading_a_saved_output_does_not_save_it_again(tmp_path: Path) -> None:
    box = Box(tmp_path)
    settings = ToolSettings()
    save_output(tmp_path, "c", "bash", "a line of some length\n" * 90_000, settings, None)
    (file,) = _saved(tmp_path)
    assert not is_too_long(box.text("read", file_path=str(file)), settings)
    assert not is_too_long(box.text("grep", pattern="line", path=str(file)), settings)


def test_every_setting_is_described() -> None:
    assert set(DOCS) == set(ToolSettings.__struct_fields__)
