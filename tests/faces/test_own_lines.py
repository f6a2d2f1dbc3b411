"""cru's own lines (notices, hints, answers of commands, questions and their help) are broken at words, whatever the terminal's width."""

from __future__ import annotations

import pytest
from tests.kit import Call, HomeDir, Reply, Status, pty, server

from cru.values.words import wrap_words


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
        ("run `cru doctor --offline` now", ["run `cru", "doctor", "--offline`", "now"]),
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


QUESTION = """\
  ask mode asks before changing files
  s, p and a keep the rule  edit:a.txt
  y once, s session, p project, a
    always, e edit, ? help, r reason, n
    no > """
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
NOT_DONE = """\
cru: there is no unfinished prompt in
this context
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


@pytest.mark.slow
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_run_of_40_columns(home: HomeDir, term: str) -> None:
    with pty("--resume", home=home, columns=40, env={"TERM": term}) as terminal:
        terminal.expect(NOT_DONE)
        assert terminal.wait() == 1
