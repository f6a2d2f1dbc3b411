"""A chat shows the end of the conversation that it opens, and says if the last turn was left in its middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.kit import Call, HomeDir, Reply, Status, cru, pty, server

from cru.core.conversations.entries import LogProblem
from cru.core.conversations.log_tail import newest_entries
from cru.faces.cli.chat import opening
from cru.faces.cli.chat.opening import TURNS, read_opening


def test_the_last_turns_stand_there_rendered_and_older_ones_do_not(home: HomeDir) -> None:
    replies = [Reply(f"**bold** answer {number}") for number in range(4)]
    replies[3:3] = [Reply(calls=[Call("ls", {"path": "."})])]
    with server(replies) as model:
        home.configure(url=model.url)
        for number in range(4):
            cru(f"prompt {number}\nsecond \x1b[2Jline", home=home)
        with pty(home=home) as terminal:
            terminal.expect_screen("bold answer 3\n")
            screen = terminal.screen()
            assert terminal.eof() == 0
    assert "the end of this conversation (cru -g 0 shows all of it):" in screen
    assert "> prompt 3\n  second \\x1b[2Jline\n[tool ls .]\nbold answer 3\n" in screen
    assert "prompt 1" in screen and "prompt 0" not in screen and "not finished" not in screen


def test_an_unfinished_turn_is_offered_before_the_next_prompt_and_gone_on_with(home: HomeDir) -> None:
    with server([Status(400), Reply("the answer"), Reply("another")]) as model:
        home.configure(url=model.url)
        assert cru("a long task", home=home).code != 0
        with pty(home=home) as terminal:
            terminal.expect_screen("“a long task”\n  /resume goes on with it\n>")
            terminal.line("/resume")
            terminal.expect("the answer")
            terminal.line("/resume")
            terminal.expect("there is no unfinished prompt")
            assert terminal.eof() == 0
    assert [e["content"] for e in home.log() if e.get("role") == "user"] == ["a long task"]


def test_what_was_taken_back_is_not_shown(home: HomeDir) -> None:
    with server([Reply("one"), Reply("two")]) as model:
        home.configure(url=model.url)
        cru("first", home=home)
        cru("second", home=home)
        assert cru("/undo", home=home).code == 0
        shown = read_opening(home.context(), home.project, plain=True).text
    assert "> first\none\n" in shown and "second" not in shown


def test_without_escape_sequences_it_stands_above_the_prompt(home: HomeDir) -> None:
    with server([Reply("**an** answer")]) as model:
        home.configure(url=model.url)
        cru("first", home=home)
        with pty(home=home, env={"TERM": "dumb"}, is_first_prompt_enough=True) as terminal:
            terminal.expect("> first")
            terminal.expect("an answer")
            terminal.expect("> ")
            assert "\x1b[1m" not in terminal.text
            assert terminal.eof() == 0


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    lines: list[bytes] = []
    for number in range(5_000):
        source: dict[str, Any] = {"metadata": {"source": "user"}, "role": "user", "content": f"p{number}"}
        answer: dict[str, Any] = {"role": "agent", "content": f"a{number}"}
        for each in (source, answer):
            lines.append(msgspec.json.encode({"id": f"{len(lines)}", "timestamp": 1, "entry_type": "message", **each}))
    path = tmp_path / "context.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    problems: list[LogProblem] = []
    reader = newest_entries(path, problems)
    shown = read_opening(tmp_path, tmp_path, plain=True).text
    assert shown.count("> p") == TURNS and "a4999" in shown and next(reader).content == "a4999"
    assert len(opening._last_turns(path)) == 2 * TURNS and not problems


def test_long_turns_and_broken_lines_are_no_reason_to_wait(tmp_path: Path) -> None:
    prompt: dict[str, Any] = {"metadata": {"source": "user"}, "role": "user", "content": "line\n" * 100_000}
    call: dict[str, Any] = {"entry_type": "tool_call", "to": "bash\x1b[2J", "content": "[1"}
    path = tmp_path / "context.jsonl"
    path.write_bytes(
        b"{torn\n"
        + b"".join(
            msgspec.json.encode({"id": str(at), "timestamp": 1, "entry_type": "message", **each}) + b"\n"
            for at, each in enumerate((prompt, call))
        )
        + b"{half"
    )
    shown = read_opening(tmp_path, tmp_path, plain=True)
    assert shown.text.count("\n") < 110 and "lines before" in shown.text and "[tool bash\\x1b[2J]" in shown.text
    assert shown.unfinished.startswith("line line")
    assert read_opening(tmp_path / "missing", tmp_path, plain=True).text == ""
