"""The small terminal shows what a real one would."""

from __future__ import annotations

import pytest
from tests.kit.screen import Screen


def shown(text: str, rows: int = 4, columns: int = 10) -> list[str]:
    screen = Screen(rows, columns)
    screen.feed(text)
    return screen.lines()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\r\ntwo", ["one", "two"]),
        ("wrong\rright", ["right"]),
        ("abc\b\bX", ["aXc"]),
        ("0123456789ab", ["0123456789", "ab"]),
        ("1\r\n2\r\n3\r\n4\r\n5", ["2", "3", "4", "5"]),
        ("abcdef\x1b[3D\x1b[K", ["abc"]),
        ("ab\r\ncd\x1b[2J", []),
        ("ab\r\ncd\x1b[1;2H\x1b[J", ["a"]),
        ("a\x1b[2Bb\x1b[2Ac", ["a c", "", " b"]),
        ("\x1b[31;1mred\x1b[0m\x1b]0;title\x07!\x1b[?2004h", ["red!"]),
    ],
)
def test_sequences(text: str, lines: list[str]) -> None:
    assert shown(text) == lines


def test_a_sequence_may_arrive_in_pieces() -> None:
    screen = Screen()
    for char in "a\x1b[1;5Hb\x1b]0;title\x1b\\c":
        screen.feed(char)
    assert screen.lines() == ["a   bc"]


def test_a_question_for_the_cursor_is_answered() -> None:
    screen = Screen()
    screen.feed("\r\nab\x1b[6n")
    assert screen.answers == "\x1b[2;3R"


def test_blanks_that_are_stepped_over_count_as_text() -> None:
    screen = Screen()
    screen.feed(">\x1b[1Chello\r\n")
    assert screen.plain == "> hello\n"
