"""Output of commands in the background, on disk."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from cru.core.agents.output import OutputLog, output_end, read_output, read_tail


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("output*.log"))


@pytest.fixture
def log(tmp_path: Path) -> OutputLog:
    return OutputLog(tmp_path, 400)


def test_a_short_output_is_one_plain_file(log: OutputLog, tmp_path: Path) -> None:
    log.write(b"one\ntwo\n")
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == ["output.log"]
    assert (tmp_path / "output.log").read_bytes() == b"one\ntwo\n"


def test_pages_give_only_what_is_new(log: OutputLog, tmp_path: Path) -> None:
    log.write(b"one\n")
    first = read_output(tmp_path, 0, 1000)
    log.write(b"two\n")
    second = read_output(tmp_path, first.offset, 1000)
    third = read_output(tmp_path, second.offset, 1000)
    log.close()
    assert [first.text, second.text, third.text] == ["one\n", "two\n", ""]
    assert third.offset == 8


def test_a_page_has_at_most_so_many_bytes(log: OutputLog, tmp_path: Path) -> None:
    log.write(b"x" * 150)
    log.close()
    page = read_output(tmp_path, 0, 100)
    assert (page.text, page.offset) == ("x" * 100, 100)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_of_a_long_output_the_first_and_the_last_part_stay(tmp_path: Path, size: int) -> None:
    log = OutputLog(tmp_path, 400)
    lines = b"".join(b"%06d\n" % n for n in range(1000))
    for at in range(0, len(lines), size):
        log.write(lines[at : at + size])
        assert on_disk(tmp_path) <= 400
    log.close()
    page = read_output(tmp_path, 0, 10_000)
    assert page.text.startswith("000000\n000001\n") and page.text.endswith("000998\n000999\n")
    head, _, rest = page.text.partition("\n[... ")
    kept = len(head) + len(rest.partition(" ...]\n")[2])
    assert (len(head), page.offset, page.skipped + kept) == (200, 7000, 7000)
    assert f"[... {page.skipped:,} bytes left out ...]" in page.text
    assert kept >= 300


def test_an_offset_into_what_is_gone_goes_on_where_there_is_something(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, 400)
    log.write(b"a" * 300)
    offset = read_output(tmp_path, 0, 1000).offset
    log.write(b"b" * 5000)
    log.close()
    page = read_output(tmp_path, offset, 1000)
    assert page.offset == 5300 and page.skipped > 4000
    assert page.text.startswith("\n[... ") and page.text.endswith("b" * 100)


def test_characters_are_never_cut_between_pages(log: OutputLog, tmp_path: Path) -> None:
    log.write("aé".encode()[:2])
    first = read_output(tmp_path, 0, 100, whole=False)
    log.write("é!".encode()[1:])
    second = read_output(tmp_path, first.offset, 100, whole=False)
    log.close()
    assert (first.text, second.text) == ("a", "é!")


def test_bytes_that_are_no_text_are_replaced(log: OutputLog, tmp_path: Path) -> None:
    log.write(b"\xff\x00\x80end\xc3")
    log.close()
    assert read_output(tmp_path, 0, 100).text == "\ufffd\x00\ufffdend\ufffd"


def test_the_last_lines(log: OutputLog, tmp_path: Path) -> None:
    log.write(b"".join(b"%03d\n" % n for n in range(1000)))
    log.close()
    page = read_tail(tmp_path, 2, 1000)
    assert (page.text, page.offset, page.skipped) == ("998\n999\n", 4000, 3992)
    assert output_end(tmp_path) == 4000


def test_what_cannot_be_written_is_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, 100_000)
    log.write(b"a" * 1000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[0][1]))
    try:
        log.write(b"b" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
    log.write(b"c" * 10)
    log.close()
    assert (log.size, log.lost, bool(log.problem)) == (3010, 2000, True)
    page = read_output(tmp_path, 0, 10_000)
    assert page.text == "a" * 1000 + "\n[... 2,000 bytes left out ...]\n" + "c" * 10
    assert (page.offset, page.skipped) == (3010, 2000)


def test_without_a_folder_there_is_no_output(tmp_path: Path) -> None:
    page = read_output(tmp_path / "none", 0, 100)
    assert (page.text, page.offset, output_end(tmp_path / "none")) == ("", 0, 0)


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "task"
    folder.mkdir()
    os.symlink(secret, folder / "output.log")
    assert read_output(folder, 0, 100).text == ""
