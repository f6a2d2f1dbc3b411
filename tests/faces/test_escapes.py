"""Which terminals get escape sequences: a table of $TERM, $NO_COLOR and whether it is a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.kit import HomeDir, Reply, pty, server

from cru.faces.cli.console import takes_escapes, takes_styles

CASES = [
    # TERM, NO_COLOR, a terminal: cursor, colours
    ("xterm-256color", None, True, True, True),
    ("xterm-256color", "", True, True, True),
    ("xterm-256color", "1", True, True, False),
    ("xterm-256color", None, False, False, False),
    ("dumb", None, True, False, False),
    ("DUMB", None, True, False, False),
    ("unknown", None, True, False, False),
    ("", None, True, False, False),
    (None, None, True, False, False),
    (None, "1", False, False, False),
]


@pytest.fixture
def terminal() -> Iterator[int]:
    ends = os.openpty()
    yield ends[1]
    for end in ends:
        os.close(end)


@pytest.mark.parametrize(("term", "no_color", "is_terminal", "escapes", "styles"), CASES)
def test_escapes_are_for_terminals_that_know_them(
    monkeypatch: pytest.MonkeyPatch, terminal: int, term: str | None, no_color: str | None, is_terminal: bool, escapes: bool, styles: bool
) -> None:  # fmt: skip
    for name, value in (("TERM", term), ("NO_COLOR", no_color)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    read, write = os.pipe()
    fd = terminal if is_terminal else write
    assert (takes_escapes(fd), takes_styles(fd)) == (escapes, styles)
    os.close(read)
    os.close(write)


@pytest.mark.slow
def test_no_colour_means_no_styles(home: HomeDir) -> None:
    with server([Reply("# Title\n\n**bold** and `code`")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home, env={"NO_COLOR": "1"}) as terminal:
            drawn = b""
            with suppress(OSError):  # Linux reports the end of the last process so
                while data := os.read(terminal.descriptor, 4096):
                    drawn += data
    assert b"bold" in drawn and not re.search(rb"\x1b\[[\d;]*m", drawn), drawn


COMMANDS = [(), ("hi",), ("doctor",), ("vault", "search", "found"), ("vault", "index"), ("mcp",),
            ("permissions",), ("hooks", "check"), ("login", "--help"),
            ("plugin",), ("sessions",), ("-g", "0")]  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("term", ["dumb", ""])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: "-".join(words) or "chat")
def test_no_face_sends_escapes_to_a_terminal_that_knows_none(home: HomeDir, words: tuple[str, ...], term: str) -> None:
    (home.path / "notes").mkdir()
    (home.path / "notes" / "a.md").write_text("It is found here, **found**.")
    with server([Reply("# Title\n\n**bold** and `code`")]) as model:
        home.configure(f'[vault]\npath = "{home.path / "notes"}"\n', url=model.url)
        with pty(
            *words, home=home, env={"TERM": term, "COLORTERM": "truecolor"}, is_first_prompt_enough=True
        ) as terminal:
            drawn, is_left = b"", bool(words)
            with suppress(OSError):  # Linux reports the end of the last process so
                while data := os.read(terminal.descriptor, 4096):
                    drawn += data
                    if not is_left and drawn.endswith(b"> "):
                        is_left = bool(os.write(terminal.descriptor, b"\x04"))
    assert b"\x1b" not in drawn and (drawn or words == ("-g", "0")), drawn
