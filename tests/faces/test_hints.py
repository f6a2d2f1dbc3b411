"""The next step that an error names works where it is shown: in the chat, in the shell, in a run that keeps nothing."""

from __future__ import annotations

import pytest
from tests.kit import HomeDir, Status, cru, pty, server

from cru.faces.cli.continuation import spell_in_chat, spell_outside_chat

TOO_LONG = Status(413)
HINT = "a shorter prompt may fit; `/compact` shortens the conversation; `/clear` starts from nothing"


@pytest.mark.parametrize(
    ("hint", "context", "keeps", "spelled"),
    [
        (HINT, "", True, "a shorter prompt may fit; `cru /compact` shortens the conversation; `cru /clear` starts from nothing"),
        ("`/clear` helps", "my own", True, "`cru -C 'my own' /clear` helps"),
        (HINT, "", False, "a shorter prompt may fit"),
        ("`/clear` helps", "", False, ""),
        ("`cru login openai` asks for it", "x", True, "`cru login openai` asks for it"),
        ("did you mean `/tools`?", "", False, "did you mean `/tools`?"),
        ("see /clear and `/`", "", True, "see /clear and `/`"),
        ("", "", True, ""),
    ],
)  # fmt: skip
def test_commands_of_the_chat_are_spelled_for_the_shell(hint: str, context: str, keeps: bool, spelled: str) -> None:
    assert spell_outside_chat(hint, context, keeps=keeps) == spelled


@pytest.mark.parametrize(
    ("hint", "spelled"),
    [
        ("`cru login openai` asks for it and keeps it", "`/login openai` asks for it and keeps it"),
        ("`cru login` for each", "`/login` for each"),
        ("`cru login openai --file`", "`cru login openai --file`"),
        (HINT, HINT),
    ],
)
def test_a_login_is_spelled_for_the_chat(hint: str, spelled: str) -> None:
    assert spell_in_chat(hint) == spelled


@pytest.mark.parametrize(
    ("argv", "shown", "hidden"),
    [
        ((), "`cru /compact` shortens the conversation; `cru /clear` starts", "-C"),
        (("-C", "other"), "`cru -C other /compact` shortens", "`/"),
        (("--no-session",), "a shorter prompt may fit\n", "/compact"),
    ],
)
def test_a_prompt_that_is_too_long_names_what_helps_in_the_shell(
    home: HomeDir, argv: tuple[str, ...], shown: str, hidden: str
) -> None:
    with server([TOO_LONG] * 3) as model:
        home.configure(url=model.url)
        done = cru(*argv, "hi", home=home)
    advice = done.err.partition("resume with")[0]
    assert done.code != 0 and shown in advice and hidden not in advice, done


def test_a_prompt_that_is_too_long_names_what_helps_in_the_chat(home: HomeDir) -> None:
    with server([TOO_LONG] * 3) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("hi")
            terminal.expect("`/clear` starts")
            terminal.eof()
    assert "cru /clear" not in terminal.text
