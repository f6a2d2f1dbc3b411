"""What was typed for a chat that is ended goes to no one else: the shell behind it would run it."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator

import pytest

from cru.faces.cli.terminal import keyboard
from cru.faces.cli.words import wrap_words


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The person's end and the program's."""
    person, program = os.openpty()
    yield person, program
    os.close(person)
    os.close(program)


@pytest.mark.parametrize("mode", ["unshown", "keys", "kept"])
def test_a_process_that_ends_throws_away_what_was_typed(terminal: tuple[int, int], mode: keyboard.InputMode) -> None:
    person, program = terminal
    before = termios.tcgetattr(program)
    block = keyboard.input_mode(program, mode)
    with block:
        os.write(person, b"rm -rf all\n")
        assert keyboard.has_typed(program)
        keyboard.restore_mode()
        assert not keyboard.has_typed(program) and termios.tcgetattr(program) == before


def test_the_rule_that_an_answer_keeps_is_copied_whole() -> None:
    line = f"  s, p and a keep the rule  bash:cp -r {'word ' * 30}&& rm -rf build"
    assert wrap_words(line, 40) == line
