"""What becomes of a command's text, without running anything. What Claude Code does is in tests/data/differential."""

from __future__ import annotations

import pytest

from cru.core.commands.prompt_files.expansion import TextPiece, expand, find_mentions, runs_commands, split_words
from cru.core.commands.prompt_files.files import split_rules


def text(body: str, typed: str, *names: str) -> str:
    return "".join(piece.text for piece in expand(body, typed, names, {}))


ARGUMENTS = [
    ("$ARGUMENTS", "a b", "a b"),
    ("$0 $1", "a b", "a b"),
    ("$0 $1", "a", "a $1"),
    ("$10 $1x $1", "a b", "$10 $1x b"),
    ("$ARGUMENTS[1] $ARGUMENTS[7]", "a 'b c'", "b c $ARGUMENTS[7]"),
    ("x$ARGUMENTSy", "a", "xay"),
    ("\\$0 \\$ARGUMENTS $0", "a", "$0 $ARGUMENTS a"),
    ("$$ ${0} $(x) $", "", "$$ ${0} $(x) $"),
    ("text", "a b", "text\n\nARGUMENTS: a b"),
    ("text $1\n", "a", "text $1\n\nARGUMENTS: a"),
    ("text", "", "text"),
    ("$issue $how $2", "12 fast", "12 fast $2"),
]


@pytest.mark.parametrize(("body", "typed", "result"), ARGUMENTS)
def test_arguments_take_their_places(body: str, typed: str, result: str) -> None:
    assert text(body, typed, "issue", "how") == result


WORDS = [
    ("a  b\tc", ["a", "b", "c"]),
    ("'a b' \"c d\" e\\ f", ["a b", "c d", "e f"]),
    ("a'b'c", ["abc"]),
    ("a it's done", ["a", "it's done"]),
    ('a "b c', ["a", '"b c']),
    ("", []),
    ("   ", []),
    ("\\", ["\\"]),
]


@pytest.mark.parametrize(("typed", "words"), WORDS)
def test_words_are_those_of_a_shell(typed: str, words: list[str]) -> None:
    assert split_words(typed) == words


COMMANDS = [
    ("!`ls`", ["ls"]),
    ("a !`ls -l` b !`pwd`", ["ls -l", "pwd"]),
    ("```!\nls\npwd\n```", ["ls\npwd"]),
    ("word!`ls` `!`ls`` ! `ls`", []),
    ("!`echo $0`", ["echo x"]),
    ("```\n!x\n```", []),
    ("!``", []),
]


@pytest.mark.parametrize(("body", "commands"), COMMANDS)
def test_commands_of_a_text(body: str, commands: list[str]) -> None:
    assert [piece.text for piece in expand(body, "x", (), {}) if piece.is_command] == commands
    assert runs_commands(body) is bool(commands)


def test_what_is_typed_adds_no_command() -> None:
    assert expand("A $ARGUMENTS", "!`touch x`", (), {}) == [TextPiece("A !`touch x`")]


def test_a_variable_of_the_folder_is_put_in() -> None:
    assert expand("in ${DIR}", "", (), {"DIR": "/x"}) == [TextPiece("in /x")]


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ("@a.md and @b/c.txt @a.md", ["a.md", "b/c.txt"]),
        ("me@a.md `@b.md` (@c.md)", []),
        ("@a\\ b", ["a b"]),
        ("@", []),
    ],
)
def test_files_that_a_text_names(body: str, paths: list[str]) -> None:
    assert find_mentions(body) == paths


@pytest.mark.parametrize(
    ("listed", "rules"),
    [
        ("Bash(git add:*), Read", ["Bash(git add:*)", "Read"]),
        ("Bash(git add:*, x) Bash(ls)", ["Bash(git add:*, x)", "Bash(ls)"]),
        ("Read", ["Read"]),
        ("", []),
        ("Bash(x", ["Bash(x"]),
    ],
)
def test_a_list_of_tools_in_one_line(listed: str, rules: list[str]) -> None:
    assert list(split_rules(listed)) == rules


def test_the_work_grows_with_the_length_of_the_text() -> None:
    assert expand("```!" + "\n" * 200_000, "", (), {})
    assert expand("```! " * 20_000, "", (), {})
    assert expand("!`" * 20_000, "", (), {})
    assert split_words("\"a' " * 20_000)
    assert expand("$ARGUMENTS[" * 20_000, "a", (), {})
