from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.core.tools.box import Box, in_child, unprivileged


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_the_one_occurrence_is_replaced(box: Box) -> None:
    path = box.file("a.py", "x = 1\ny = 2\n")
    path.chmod(0o700)
    text = box.text("edit", file_path="a.py", old_string="y = 2", new_string="y = 3")
    assert text == "Edited a.py: 1 replacement at line 2."
    assert path.read_text() == "x = 1\ny = 3\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_several_occurrences_are_refused_with_their_lines(box: Box) -> None:
    path = box.file("a.py", "x\nfoo\nfoo foo\n")
    message = box.error("edit", file_path="a.py", old_string="foo", new_string="bar")
    assert message.startswith("`old_string` occurs 3 times in a.py (lines 2, 3, 3)")
    assert "`replace_all`" in message
    assert path.read_text() == "x\nfoo\nfoo foo\n"


def test_all_occurrences_are_replaced_if_asked_for(box: Box) -> None:
    path = box.file("a.py", "foo\n" * 12)
    text = box.text("edit", file_path="a.py", old_string="foo", new_string="bar", replace_all=True)
    assert text == "Edited a.py: 12 replacements at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …."
    assert path.read_text() == "bar\n" * 12


@pytest.mark.parametrize(
    ("content", "old", "hint"),
    [
        ("def f():\n    return 1\n", "def f():\n  return 1", "its first line is like line 1"),
        ("\tvalue = 1\n", "value  =  1", "its first line is like line 1"),
        ("one\ncolour = 'red'\n", "color = 'red'", "the closest line is 2: \"colour = 'red'\""),
        ("one\n", "something else entirely", "read the file again"),
        ("one\n" * 6000, "something else entirely", "read the file again"),
        ("one\n", "\n\n\n", "read the file again"),
    ],
)
def test_text_that_is_not_there_is_reported_with_what_comes_closest(
    box: Box, content: str, old: str, hint: str
) -> None:
    box.file("a.py", content)
    message = box.error("edit", file_path="a.py", old_string=old, new_string="x")
    assert message.startswith("`old_string` was not found in a.py")
    assert hint in message


def test_windows_line_ends_stay(box: Box) -> None:
    path = box.file("a.txt", "one\r\ntwo\r\nthree\r\n")
    box.call("edit", file_path="a.txt", old_string="one\ntwo", new_string="1\n2\nmore")
    assert path.read_bytes() == b"1\r\n2\r\nmore\r\nthree\r\n"
    box.call("edit", file_path="a.txt", old_string="three", new_string="3\n4")
    assert path.read_bytes() == b"1\r\n2\r\nmore\r\n3\r\n4\r\n"
    box.call("edit", file_path="a.txt", old_string="3\r\n4", new_string="5\r\n6")
    assert path.read_bytes() == b"1\r\n2\r\nmore\r\n5\r\n6\r\n"


def test_mixed_line_ends_stay_mixed(box: Box) -> None:
    path = box.file("a.txt", "one\r\ntwo\nthree\n")
    box.call("edit", file_path="a.txt", old_string="two\nthree", new_string="2\n3")
    assert path.read_bytes() == b"one\r\n2\n3\n"
    box.call("edit", file_path="a.txt", old_string="one\n2", new_string="1\n2")
    assert path.read_bytes() == b"1\r\n2\n3\n"


def test_a_byte_order_mark_and_a_missing_last_line_end_stay(box: Box) -> None:
    path = box.file("a.txt", b"\xef\xbb\xbfone\ntwo")
    box.call("edit", file_path="a.txt", old_string="two", new_string="2")
    assert path.read_bytes() == b"\xef\xbb\xbfone\n2"


def test_an_edit_without_a_change_is_refused(box: Box) -> None:
    box.file("a", "x")
    assert "`new_string`: the same as `old_string`" in box.error("edit", file_path="a", old_string="x", new_string="x")


def test_an_empty_old_string_creates_a_missing_file(box: Box) -> None:
    assert box.text("edit", file_path="n/a", old_string="", new_string="x\n") == "Created n/a."
    assert (box.root / "n/a").read_text() == "x\n"


def test_an_empty_old_string_does_not_overwrite(box: Box) -> None:
    box.file("a", "x")
    assert "is empty, but a is not" in box.error("edit", file_path="a", old_string="", new_string="y")


def test_a_missing_file_hints_at_the_closest_name(box: Box) -> None:
    box.file("main.py")
    message = box.error("edit", file_path="mainn.py", old_string="a", new_string="b")
    assert message.endswith("did you mean `main.py`?")


def test_what_is_not_utf8_is_refused_and_stays(box: Box) -> None:
    path = box.file("a", b"caf\xe9 one")
    assert "`a` is not UTF-8 text (byte 3)" in box.error("edit", file_path="a", old_string="one", new_string="two")
    assert path.read_bytes() == b"caf\xe9 one"


def test_what_is_too_large_is_refused(box: Box) -> None:
    with open(box.root / "a", "wb") as file:
        file.truncate(33 * 1024 * 1024)
    assert "larger than 32 MiB" in box.error("edit", file_path="a", old_string="one", new_string="two")


def test_a_link_is_edited_through(box: Box) -> None:
    path = box.file("a", "one")
    (box.root / "link").symlink_to(path)
    box.call("edit", file_path="link", old_string="one", new_string="two")
    assert (box.root / "link").is_symlink()
    assert path.read_text() == "two"


def test_special_characters_are_taken_literally(box: Box) -> None:
    path = box.file("a", r"a.*(b)\1 $0")
    box.call("edit", file_path="a", old_string=r"a.*(b)\1", new_string=r"\g<0>\n")
    assert path.read_text() == r"\g<0>\n $0"


@pytest.mark.slow
def test_what_may_not_be_read_says_so(tmp_path: Path) -> None:
    Box(tmp_path).file("a", "x").chmod(0o200)
    text = in_child(unprivileged(), tmp_path, "edit", file_path="a", old_string="x", new_string="y")[0]
    assert text == "ToolError: cannot read `a`: Permission denied"


@pytest.mark.parametrize("rules", [{"deny": "a.py"}, {"ask": "a.py"}])
def test_no_line_is_shown_of_a_file_that_may_be_changed_but_not_read(box: Box, rules: dict[str, str]) -> None:
    box.file("a.py", "one\ncolour = 'red'\n")
    box.forbid(*filter(None, [rules.get("deny")]), ask=tuple(filter(None, [rules.get("ask")])))
    message = box.error("edit", file_path="a.py", old_string="color = 'red'", new_string="x")
    assert message == "`old_string` was not found in a.py"
    assert box.text("edit", file_path="a.py", old_string="colour", new_string="x").startswith("Edited a.py")
