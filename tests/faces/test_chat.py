"""The chat: `cru` on a terminal."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.kit import Call, Hang, HomeDir, Reply, Status, pty, server, start, wait_until


def prompts(home: HomeDir, name: str = "default") -> list[str]:
    return [e["content"] for e in home.log(name) if e.get("role") == "user"]


def test_two_turns_of_one_conversation(home: HomeDir) -> None:
    with server([Reply("**first** answer"), Reply("second answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("cru in the context default.")
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("first answer")
            terminal.line("two")
            terminal.expect("second answer")
            assert terminal.eof() == 0
            assert "this conversation: cru -C default\n" in terminal.text and "resume" not in terminal.text
    assert [m["content"] for m in model.requests[1].body["messages"][1:]] == ["one", "**first** answer", "two"]
    assert not (home.context() / ".lock").exists()


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(home: HomeDir) -> None:
    with server([Hang("so far\n\n"), Reply("next answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("so far")
            terminal.key("c-c")
            terminal.expect("cru: interrupted")
            terminal.line("two")
            terminal.expect("next answer")
            assert terminal.eof() == 0


def test_ctrl_c_clears_the_line(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("never sent")
            terminal.expect("never sent")
            terminal.key("c-c")
            terminal.line("sent")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["sent"]


def test_an_error_is_shown_and_the_chat_goes_on(home: HomeDir) -> None:
    with server([Status(400, body="no such thing"), Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("no such thing")
            terminal.line("two")
            terminal.expect("answer")
            assert terminal.eof() == 0


def test_leaving_after_a_failed_turn_says_how_to_resume_it(home: HomeDir) -> None:
    with server([Status(400, body="no such thing")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("no such thing")
            assert terminal.eof() == 0
            assert "resume with: cru -C default --resume\n" in terminal.text


def test_a_held_context_is_told_and_the_chat_goes_on(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("answer")]) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            with pty(home=home) as terminal:
                terminal.expect("> ")
                terminal.line("one")
                terminal.expect(f"process {first.pid}")
                first.interrupt()
                first.wait()
                terminal.line("two")
                terminal.expect("answer")
                assert terminal.eof() == 0


def test_no_model_is_told_and_the_chat_goes_on(home: HomeDir) -> None:
    with pty("--model", "openai:gpt-5", home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("openai needs a key")
        assert terminal.eof() == 0


def test_a_context_for_this_run_opens_a_chat_in_it(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty("-C", "work", home=home) as terminal:
            terminal.expect("cru in the context work.")
            terminal.expect_screen("project · work · ask")
            terminal.line("one")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home, "work") == ["one"]


def test_switching_to_a_context_opens_the_chat_on_it(home: HomeDir) -> None:
    with pty("-c", "work", home=home) as terminal:
        terminal.expect("cru in the context work.")
        assert terminal.eof() == 0
    with pty("-x", "-c", "other", home=home) as terminal:
        assert terminal.wait() == 0
    assert terminal.text == ""


def test_questions_are_asked_between_prompt_and_answer(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "touch made"})]), Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("no > ")
            terminal.line("y")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert (home.project / "made").exists()


def test_alt_enter_starts_a_new_line(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("one\x1b\rtwo\r")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one\ntwo"]


def test_what_was_typed_is_kept_in_a_private_file(home: HomeDir) -> None:
    with pty("--model", "openai:gpt-5", home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("needs a key")
        assert terminal.eof() == 0
    path = home.cru / "chat_history"
    assert "+one\n" in path.read_text() and path.stat().st_mode & 0o777 == 0o600


def test_what_was_typed_in_another_chat_comes_back_with_the_up_key(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        (home.cru / "chat_history").write_text("\n# 2026-01-01 00:00:00\n+typed before\n")
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.key("up")
            terminal.expect("typed before")
            terminal.key("enter")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["typed before"]


def test_a_history_that_cannot_be_written_is_no_obstacle(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        (home.cru / "chat_history").mkdir()
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("answer")
            assert terminal.eof() == 0


@pytest.mark.slow
def test_standard_output_may_be_a_file_and_holds_only_answers(home: HomeDir) -> None:
    script = home.path / "to-file"
    script.write_text("#!/bin/sh\nexec cru >out.txt\n")
    script.chmod(0o755)
    with server([Reply("**raw** answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home, script=script) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            wait_until(lambda: "**raw** answer\n" in (home.project / "out.txt").read_text())
            assert terminal.eof() == 0
    assert (home.project / "out.txt").read_text() == "**raw** answer\n"


@pytest.mark.parametrize("busy", [False, True])
def test_sigterm_ends_the_chat_with_its_log_complete(home: HomeDir, busy: bool) -> None:
    with server([Hang("so far\n\n")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            if busy:
                terminal.line("one")
                terminal.expect("so far")
            subprocess.run(["kill", f"-{signal.SIGTERM}", str(terminal.pid)], check=True)
            assert terminal.wait() == 143
    if busy:
        assert home.log()[-1]["metadata"]["cause"] == "interrupted"
    assert not (home.context() / ".lock").exists()


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_ctrl_z_stops_the_chat_and_it_comes_back(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.key("c-z")
            wait_until(lambda: stopped(terminal.pid))
            subprocess.run(["kill", "-CONT", str(terminal.pid)], check=True)
            terminal.line("one")
            terminal.expect("answer")
            assert terminal.eof() == 0


@pytest.mark.slow
def test_a_leading_newline_is_dropped_in_every_turn(home: HomeDir) -> None:
    script = home.path / "to-file"
    script.write_text("#!/bin/sh\nexec cru >out.txt\n")
    script.chmod(0o755)
    with server([Hang("\nso far"), Reply("\nanswer")]) as model:
        home.configure(url=model.url)
        with pty(home=home, script=script) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            wait_until(lambda: "so far" in (home.project / "out.txt").read_text())
            terminal.key("c-c")
            terminal.expect("cru: interrupted")
            terminal.line("two")
            wait_until(lambda: "answer\n" in (home.project / "out.txt").read_text())
            assert terminal.eof() == 0
    assert (home.project / "out.txt").read_text() == "so far\nanswer\n"


def test_what_is_typed_during_an_answer_is_shown_and_sent_after_it(home: HomeDir) -> None:
    with server([Reply("first answer", delay=0.3), Reply("second answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("waiting for the model")
            terminal.line("two")
            terminal.expect("first answer")
            terminal.expect("> two")
            terminal.expect("second answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one", "two"]


def test_ctrl_c_keeps_what_was_typed_during_the_answer_and_does_not_send_it(home: HomeDir) -> None:
    with server([Hang("so far\n\n"), Reply("next answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("so far")
            terminal.line("twoo\x7f")
            terminal.key("c-c")
            terminal.expect("> two")
            assert len(model.requests) == 1
            terminal.line(" three")
            terminal.expect("next answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one", "two three"]


@pytest.mark.parametrize("word", ["/quit", "/exit"])
def test_a_word_leaves_and_says_how_to_come_back(home: HomeDir, word: str) -> None:
    with pty("-t", "-C", "work", home=home) as terminal:
        terminal.expect("> ")
        terminal.line(word)
        assert terminal.wait() == 0
    assert "this conversation: cru -t -C work\n" in terminal.text and prompts(home, "work") == []


def test_a_prompt_of_several_lines_comes_back_as_it_was_in_this_chat_and_the_next(home: HomeDir) -> None:
    with server(lambda request: Reply("answered")) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("\x1b[200~one\n  two\x1b[201~\r")
            terminal.expect("answered")
            terminal.expect("> ")
            terminal.key("up")
            terminal.key("enter")
            terminal.expect("answered")
            assert terminal.eof() == 0
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("\x12tw")  # Ctrl-R searches
            terminal.expect("two")
            terminal.send("\r\r")  # the first Enter ends the search
            terminal.expect("answered")
            assert terminal.eof() == 0
    assert prompts(home) == ["one\n  two"] * 3


def test_ctrl_c_on_an_empty_line_ends_nothing_and_ctrl_d_within_a_line_deletes(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.key("c-c")
            terminal.send("x")
            terminal.key("c-c")  # clears the line; in an empty one it would be the second, which leaves
            terminal.send("oone\x01\x04\r")  # Ctrl-A to the beginning, Ctrl-D there
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one"]
