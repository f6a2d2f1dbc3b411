"""cru's own lines (notices, hints, answers of commands, questions and their help) are broken at words, whatever the terminal's width."""

from __future__ import annotations

from functools import partial

import pytest
from tests.kit import Call, HomeDir, Reply, Status, cru, pty, server
from tests.kit.growth import assert_linear

from cru.faces.cli.words import wrap_words


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("one two three four", ["one two", "three four"]),
        ("1234567890", ["1234567890"]),
        ("  one two three", ["  one two", "  three"]),
        ("one  two three", ["one  two", "three"]),
        ("see https://example.org/a/b c", ["see https://example.org/a/b c"]),
        ("see https://example.org/a/b cde f", ["see https://example.org/a/b", "cde f"]),
        ("a `cru -c x` b", ["a", "`cru -c x`", "b"]),
        ("run `cru doctor --offline` now", ["run `cru doctor --offline` now"]),
        ("look at it, then: cru -C x (the model)", ["look at", "it, then:", "cru -C x", "(the", "model)"]),
        ("take it: cru -c, or not", ["take it:", "cru -c, or", "not"]),
        ("here: cru has no tools", ["here: cru", "has no", "tools"]),
        ("pip install 'cru[mcp]' && true; or", ["pip install 'cru[mcp]' && true; or"]),
        ("in /My Notes/a: no", ["in /My Notes/a: no"]),
        ("a /b/c is d/e f", ["a /b/c is", "d/e f"]),
        ("one `two three", ["one `two", "three"]),
        ("y once, n no > ", ["y once, n", "no > "]),
        ("漢字漢字 漢字", ["漢字漢字", "漢字"]),
        ("resume with: cru -c x --resume", ["resume with: cru -c x --resume"]),
        ("", [""]),
        ("            ", ["            "]),
    ],
)
def test_a_line_is_broken_at_words(line: str, rows: list[str]) -> None:
    assert wrap_words(line, 10).split("\n") == rows


def test_further_rows_are_indented_as_the_line_and_by_the_hang() -> None:
    assert wrap_words("  n  refuse the call\nnext", 12, 3) == "  n  refuse\n     the\n     call\nnext"


@pytest.mark.parametrize("words", ["word ", "漢字漢字漢字 ", "/a/b ", "`a ", "cru: cru -c "])
def test_long_lines_take_linear_time(words: str) -> None:
    assert_linear(lambda size: partial(wrap_words, words * size, 10), 8_000)


QUESTION = """\
  ask mode asks before changing files
  s, p and a keep the rule  edit:a.txt
  y once, s session, p project,
    a always, e edit, ? help, r reason,
    n no > """
HELP = """\
  s       keep the rule until this cru
          ends
"""
FAILED = """\
cru: openai_compatible answered 400: bad
thing happened
"""
UNANSWERED = """\
/resume tries it again, the up arrow
lets you edit it; it is not sent with
another prompt
"""


def test_a_chat_of_40_columns(home: HomeDir) -> None:
    edit = Call("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    (home.project / "a.txt").write_text("one\n")
    with server([Reply(calls=[edit]), Reply("done"), Status(400, body="bad thing happened")]) as model:
        home.configure(url=model.url)
        with pty(home=home, columns=40) as terminal:
            terminal.expect("> ")
            terminal.line("change it")
            terminal.expect(QUESTION)
            terminal.send("?")
            terminal.expect(HELP)
            terminal.expect("no > ")
            terminal.send("n")
            terminal.expect("done")
            terminal.line("/undo")
            terminal.expect("/redo brings it again, until the next\nprompt\n")
            terminal.line("another")
            terminal.expect(FAILED)
            terminal.expect(UNANSWERED)
            assert terminal.eof() == 0
    assert all(rows in terminal.text for rows in (QUESTION, HELP, FAILED, UNANSWERED))


REFUSED = Status(400, body="one of the words " * 12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("is_chat", [False, True])
@pytest.mark.parametrize("term", ["xterm", "dumb"])
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_line_is_broken_only_on_a_terminal(home: HomeDir, columns: int, term: str, is_chat: bool) -> None:
    with server([REFUSED, REFUSED]) as model:
        home.configure(url=model.url)
        (line,) = [line for line in cru("hi", home=home).err.splitlines() if "400" in line]
        assert len(line) > 120
        with pty(
            *([] if is_chat else ["hi"]),
            home=home,
            columns=columns,
            env={"TERM": term},
            is_first_prompt_enough=term == "dumb",
        ) as terminal:
            if is_chat:
                terminal.expect("> ")
                terminal.line("hi")
            terminal.expect(line)
            assert (terminal.eof() == 0) if is_chat else (terminal.wait() == 1)
    assert wrap_words(line, columns) in terminal.text
