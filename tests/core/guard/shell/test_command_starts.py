from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cru.core.guard.shell.command_starts import find_command_starts
from cru.core.guard.shell.word_reader import DEEPEST

PIECES = [
    *"ab/.~ \t\n;&|<>()$'\"\\`{}*?[]#!=",
    "./x",
    "cd ",
    "&&",
    "||",
    "$(",
    "${",
    "if ",
    "then ",
    "[[ ",
    "]]",
    "<<",
    "$HOME",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_text_is_read_as_far_as_it_goes(pieces: list[str]) -> None:
    source = "".join(pieces)
    starts = find_command_starts(source, {"HOME": "/home/me"})
    places = [start.at for start in starts]
    assert len(set(places)) == len(places)
    assert all(source[at] not in " \t\n;&|()<>" for at in places)


def test_nesting_without_end_is_left_to_the_shell() -> None:
    source = "$(./x " * (DEEPEST * 100)
    assert len(find_command_starts(source, {})) <= DEEPEST


def test_a_folder_that_was_changed_to_is_followed_as_far_as_it_is_certain() -> None:
    sources = {
        "cd a && cd b; ./x": ("a", "b"),
        "cd 'a b' && ./x": ("a b",),
        "cd /t\n./x": ("/t",),
        "(cd a); ./x": (),
        "cd a || ./x": None,
        "cd a | ./x": None,
        "cd - && ./x": None,
        "cd && ./x": None,
        "cd $(pwd) && ./x": None,
        "while true; do cd a; ./x; done": None,
        "pushd a && ./x": None,
    }
    for source, folders in sources.items():
        assert [start.folders for start in find_command_starts(source, {}) if start.text == "./x"] == [folders], source
