"""A prompt that failed is offered again."""

from __future__ import annotations

import pytest
from tests.kit import Hang, HomeDir, Reply, Status, pty, server


@pytest.mark.slow
def test_a_prompt_without_an_answer_is_offered_again_and_not_sent_with_the_next(home: HomeDir) -> None:
    with server([Status(400), Hang(""), Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("first")
            terminal.expect("/resume tries it again")
            terminal.line("first try")
            model.wait(2)
            terminal.key("c-c")
            terminal.expect("/resume tries it again")
            terminal.line("other")
            terminal.expect("“first try” had no answer; it is not sent")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert [message["content"] for message in model.requests[-1].body["messages"] if message["role"] == "user"] == [
        "other"
    ]
