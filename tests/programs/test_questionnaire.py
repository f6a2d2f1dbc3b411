"""The questionnaire with a person at the terminal (without one: tests/programs/questionnaire/play.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import Call, Reply, server
from tests.programs.stage import Stage

ESC = "\x1b"
QUESTIONS = ("nowhere", "Mary", "a page")
# What is typed at each question, and what comes of it; Esc cancels, and the plugin knows what to do then.
ANSWERS = {
    "chosen": (("3", "2", "1"), "nowhere, Mary, short/1"),
    "words of one's own": (("on the moon", "1", "2"), "on the moon, Ada, long/40"),
    "taken": (("", "", ""), "here, Ada, short/1"),
    "cancelled": ((ESC, ESC, ESC), "in a branch, Ada, long/40"),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", ["lua", "py"])
@pytest.mark.parametrize("how", ANSWERS)
def test_what_is_typed_is_what_the_plugin_works_with(tmp_path: Path, language: str, how: str) -> None:
    typed, result = ANSWERS[how]
    stage = Stage(tmp_path, "questionnaire", language)
    with server([Reply(calls=[Call("interview")]), Reply("thanks")]) as model:
        with stage.terminal(model.url, "go on") as terminal:
            for question, line in zip(QUESTIONS, typed, strict=True):
                terminal.expect(question)
                terminal.expect(" > ")
                terminal.send(ESC) if line == ESC else terminal.line(line)
            terminal.expect("thanks")
            assert terminal.wait() == 0
    assert model.requests[-1].body["messages"][-1]["content"] == result
    assert {"ask.ask_user", "show_panel", "popup.show"} <= stage.called
