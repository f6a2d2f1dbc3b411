from __future__ import annotations

import asyncio
import os
import random
import stat
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.core.tools.box import Box, in_child, unprivileged
from tests.kit.sandbox import needs_mounts

from cru.core.tools import files
from cru.core.tools.protocol import ToolError, ToolResult, ToolSettings


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_lines_come_with_their_numbers(box: Box) -> None:
    box.file("a.txt", "one\n\nthree\n")
    assert box.text("read", file_path="a.txt") == "     1\tone\n     2\t\n     3\tthree"


def test_a_part_can_be_read_and_says_how_to_go_on(box: Box) -> None:
    box.file("a.txt", "".join(f"{i}\n" for i in range(1, 11)))
    text = box.text("read", file_path="a.txt", offset=3, limit=2)
    assert text == "     3\t3\n     4\t4\n[lines 3-4 of 10; go on with offset 5]"
    assert box.text("read", file_path="a.txt", offset=9, limit=2) == "     9\t9\n    10\t10"


def test_two_thousand_lines_are_read_if_nothing_is_said(box: Box) -> None:
    box.file("a.txt", "x\n" * 2500)
    assert box.text("read", file_path="a.txt").endswith("[lines 1-2000 of 2,500; go on with offset 2001]")


def test_an_offset_past_the_end_tells_how_many_lines_there_are(box: Box) -> None:
    box.file("a.txt", "one\ntwo")
    assert "`offset`: 3 is past the end of `a.txt`, which has 2 lines" in box.error("read", file_path="a.txt", offset=3)


def test_an_empty_file_is_said_to_be_empty(box: Box) -> None:
    box.file("a.txt")
    assert box.text("read", file_path="a.txt") == "(empty file)"


def test_windows_line_ends_are_not_shown(box: Box) -> None:
    box.file("a.txt", "one\r\ntwo\r\n")
    assert box.text("read", file_path="a.txt") == "     1\tone\n     2\ttwo"


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_a_long_line_is_cut_with_a_mark(box: Box, letter: str) -> None:
    box.file("a.txt", letter * 9_000 + "\nnext\n")
    first, second = box.text("read", file_path="a.txt").splitlines()
    assert first == f"     1\t{letter * 2000} [line cut: {9_000 * len(letter.encode()) + 1:,} bytes]"
    assert second == "     2\tnext"


def test_bytes_that_are_not_utf8_are_replaced_and_counted(box: Box) -> None:
    box.file("a.txt", b"caf\xe9\nfine\nreally \xef\xbf\xbd\n")
    text = box.text("read", file_path="a.txt")
    assert text.startswith("     1\tcaf\ufffd\n     2\tfine\n")
    assert text.endswith("[lines that are not valid UTF-8: 1; what could not be read is shown as \ufffd]")


PIECES = [
    "x",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "é",
    "\ufffd",
    "\u2028",
    "\x0b",
    "word " * 20,
    "y" * 1999,
    "z" * 2001,
    "ü" * 5000,
    "\ufeff",
]


@pytest.mark.sample(15)
@pytest.mark.parametrize("seed", range(60))
def test_a_page_read_at_once_is_the_one_read_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(seed)
    box = Box(tmp_path, ToolSettings(tool_output_cache_threshold=draw.choice([30_000, 400, 201, 10**6])))
    rare = draw.random() < 0.5
    pieces = PIECES[: 10 if rare else None]
    data = "".join(draw.choices(pieces, k=draw.choice([0, 1, 5, 60, 3000 if rare else 60]))).encode()
    data += b"\xff" * (draw.random() < 0.1)
    box.file("a", data)
    pages = [
        {"file_path": "a", "offset": offset, "limit": limit} for offset in (1, 2, 7, 1001) for limit in (1, 3, 2000)
    ]
    results = []
    for plain in (files._show_plain_page, lambda data, args, room: ""):
        monkeypatch.setattr(files, "_show_plain_page", plain)
        results.append([_outcome(box, page) for page in pages])
    assert results[0] == results[1]


def _outcome(box: Box, page: dict[str, Any]) -> str:
    try:
        return box.text("read", **page)
    except ToolError as error:
        return f"error: {error}"


def test_lines_are_not_taken_one_by_one(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call") and frame.f_code.co_filename == files.__file__

    async def main() -> ToolResult:
        sys.setprofile(count)
        try:
            return await box.acall("read", file_path="a")
        finally:
            sys.setprofile(None)

    box.file("a", "a line\r\n" * 100 + "a line\n" * 1800)
    asyncio.run(main())  # what is kept from call to call
    calls = 0
    assert len(asyncio.run(main()).content.splitlines()) == 1900
    assert calls < 2000
    box.file("a", "a line\n" * 1900)
    calls = 0
    assert len(asyncio.run(main()).content.splitlines()) == 1900
    assert calls < 100


def test_a_binary_file_is_refused_with_its_size(box: Box) -> None:
    box.file("a.bin", b"\x7fELF\0\0" + b"x" * 1000)
    assert box.error("read", file_path="a.bin") == "`a.bin` is a binary file (1,006 bytes)"


def test_utf16_is_recognised(box: Box) -> None:
    box.file("a.txt", "hello".encode("utf-16"))
    assert "looks like UTF-16" in box.error("read", file_path="a.txt")


def test_a_missing_file_hints_at_the_closest_name(box: Box) -> None:
    box.file("src/main.py")
    assert box.error("read", file_path="src/mian.py") == "`src/mian.py` does not exist\n  did you mean `main.py`?"
    assert box.error("read", file_path="src/zzzzzzzzz") == "`src/zzzzzzzzz` does not exist"


def test_a_missing_folder_is_named_with_the_one_that_exists(box: Box) -> None:
    root = box.root.resolve()
    message = box.error("read", file_path="no/such/file")
    assert message == f"`no/such/file` does not exist\n  the folder {root}/no/such does not exist; {root} does"


def test_a_folder_is_not_a_file(box: Box) -> None:
    box.file("src/a")
    assert box.error("read", file_path="src") == "`src` is a folder\n  list it with `ls`"
    assert "does not exist" in box.error("read", file_path="src/a/b")


@pytest.mark.parametrize("path", ["/dev/zero", "fifo"])
def test_what_has_no_end_is_not_read(box: Box, path: str) -> None:
    os.mkfifo(box.root / "fifo")
    assert box.error("read", file_path=path) == f"`{path}` is not a regular file"


def test_paths_are_meant_from_the_project_root_and_may_be_absolute_or_in_the_home(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(box.root))
    path = box.file("a.txt", "x")
    assert {box.text("read", file_path=p) for p in ("a.txt", "./a.txt", str(path), "~/a.txt")} == {"     1\tx"}


def test_a_nul_character_in_a_path_is_refused(box: Box) -> None:
    for tool, more in (("read", {}), ("write", {"content": ""}), ("edit", {"old_string": "a", "new_string": "b"})):
        assert "cannot hold a NUL" in box.error(tool, file_path="a\0b", **more)


def test_a_path_that_is_too_long_is_refused(box: Box) -> None:
    assert "File name too long" in box.error("read", file_path="x" * 300)
    assert "File name too long" in box.error("write", file_path="x" * 300, content="x")


def test_a_loop_of_links_is_refused(box: Box) -> None:
    (box.root / "a").symlink_to("b")
    (box.root / "b").symlink_to("a")
    assert "`a`" in box.error("read", file_path="a")


@pytest.mark.slow
def test_what_may_not_be_read_says_so(tmp_path: Path) -> None:
    Box(tmp_path).file("secret", "x").chmod(0)
    assert in_child(unprivileged(), tmp_path, "read", file_path="secret")[0] == (
        "ToolError: cannot read `secret`: Permission denied"
    )


@pytest.mark.slow
def test_a_huge_file_takes_little_memory_even_if_it_is_one_line(tmp_path: Path) -> None:
    box = Box(tmp_path)
    with open(box.root / "huge", "wb") as file:
        for _ in range(150):
            file.write(b"x" * 1_000_000)
        file.write(b"\nend\n")
    text, _, peak = in_child([], tmp_path, "read", file_path="huge")
    assert text.endswith("[line cut: 150,000,001 bytes]\n     2\tend")
    assert peak < 110_000


def test_reading_stops_before_the_output_would_be_saved_to_a_file(tmp_path: Path) -> None:
    box = Box(tmp_path, ToolSettings(tool_output_cache_threshold=1000))
    box.file("a.txt", "some words on a line\n" * 500)
    text = box.text("read", file_path="a.txt")
    assert len(text) <= 1000
    last = text.splitlines()[-1]
    assert last.startswith("[lines 1-") and last.endswith(f"of 500; go on with offset {len(text.splitlines())}]")


def test_a_new_file_is_created_with_its_folders(box: Box) -> None:
    assert box.text("write", file_path="a/b/c.txt", content="one\ntwo") == "Created a/b/c.txt (2 lines, 7 bytes)."
    assert (box.root / "a/b/c.txt").read_text() == "one\ntwo"


def test_a_file_is_replaced_and_keeps_its_mode(box: Box) -> None:
    path = box.file("run.sh", "old")
    path.chmod(0o751)
    assert box.text("write", file_path="run.sh", content="é\n") == "Replaced run.sh (1 line, 3 bytes)."
    assert path.read_bytes() == "é\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_replaced_file_keeps_its_owner(box: Box) -> None:
    path = box.file("a", "old")
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(path, 1234, 4321)
    box.call("write", file_path="a", content="new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_text()) == (1234, 4321, "new")


@pytest.mark.slow
def test_a_file_whose_owner_cannot_be_kept_is_written_in_place(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    path = Box(tmp_path).file("a", "old")
    path.chmod(0o666)
    os.chown(path, 1234, 4321)
    text = in_child(
        ["setpriv", "--bounding-set=-chown", "--inh-caps=-chown"], tmp_path, "write", file_path="a", content="x"
    )
    assert text[0] == "Replaced a (1 line, 1 bytes)."
    assert (path.stat().st_uid, path.read_text()) == (1234, "x")


def test_a_new_file_gets_the_mode_of_the_umask(box: Box) -> None:
    old = os.umask(0o027)
    try:
        box.call("write", file_path="a", content="")
    finally:
        os.umask(old)
    assert stat.S_IMODE((box.root / "a").stat().st_mode) == 0o640


def test_a_link_is_written_through(box: Box) -> None:
    target = box.file("real/a.txt", "old")
    (box.root / "link").symlink_to("real/a.txt")
    box.call("write", file_path="link", content="new")
    assert (box.root / "link").is_symlink()
    assert target.read_text() == "new"


def test_no_other_file_is_left_beside_it(box: Box) -> None:
    box.call("write", file_path="a", content="x")
    box.call("write", file_path="a", content="y")
    assert os.listdir(box.root) == ["a"]


def test_what_is_not_a_file_is_not_written(box: Box) -> None:
    box.file("src/a")
    os.mkfifo(box.root / "fifo")
    assert box.error("write", file_path="src", content="x") == "`src` is a folder"
    assert box.error("write", file_path="fifo", content="x") == "`fifo` is not a regular file"
    assert "Not a directory" in box.error("write", file_path="src/a/b", content="x")


def test_half_a_surrogate_pair_is_refused_before_anything_is_touched(box: Box) -> None:
    path = box.file("a", "old")
    with pytest.raises(ToolError, match="half a surrogate pair"):
        asyncio.run(box.tool("write").run({"file_path": "a", "content": "\ud800"}, box.running))
    assert path.read_text() == "old"


@pytest.mark.slow
def test_what_may_not_be_written_says_so_and_stays(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.file("a", "old").chmod(0o444)
    box.file("locked/a")
    (box.root / "locked").chmod(0o555)
    before = unprivileged()
    assert in_child(before, tmp_path, "write", file_path="a", content="new")[0] == (
        "ToolError: cannot write `a`: it is read-only"
    )
    assert in_child(before, tmp_path, "write", file_path="locked/b", content="x")[0] == (
        "ToolError: cannot write `locked/b`: Permission denied"
    )
    assert (box.root / "a").read_text() == "old"


@pytest.mark.slow
def test_a_writable_file_in_a_closed_folder_is_written_in_place(tmp_path: Path) -> None:
    box = Box(tmp_path)
    path = box.file("closed/a", "old")
    path.parent.chmod(0o555)
    text = in_child(unprivileged(), tmp_path, "write", file_path="closed/a", content="new")[0]
    assert text.startswith("Replaced")
    assert path.read_text() == "new"


@pytest.mark.slow
@needs_mounts
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    disk = tmp_path / "project"
    disk.mkdir()
    prepare = f"mount -t tmpfs -o size=64k none '{disk}' && printf old >'{disk}/a' && " + '"$@" && '
    check = f"cat '{disk}/a' >'{tmp_path}/after' && ls -A '{disk}' >>'{tmp_path}/after'"
    before = ["unshare", "-m", "sh", "-c", prepare + check, "sh"]
    text = in_child(before, tmp_path, "write", file_path="a", content="x" * 100_000)[0]
    assert text == "ToolError: cannot write `a`: No space left on device"
    assert (tmp_path / "after").read_text() == "olda\n"
