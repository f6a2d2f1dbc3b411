"""Where the prompt comes from: words, a pipe, or both."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.kit import Done, HomeDir, Reply, cru, pty, server


def asked(home: HomeDir, *words: str, input: bytes | str | None = None) -> tuple[str, Done]:
    """The prompt as the model read it."""
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru(*words, home=home, input=input)
    content = model.requests[0].body["messages"][-1]["content"] if model.requests else ""
    return content, run


@pytest.mark.parametrize(
    ("words", "piped", "prompt"),
    [
        (("explain", "this"), None, "explain this"),
        (("explain",), "some text\n", "explain\n\nsome text"),
        (("explain",), "  \n ", "explain"),
        (("explain",), "", "explain"),
        ((), "one\ntwo\n\nthree\n", "one\ntwo\n\nthree"),
        (("a",), "  indented\r\nsecond\n", "a\n\nindented\r\nsecond"),
        (("two  spaces", "kept\nlines"), None, "two  spaces kept\nlines"),
        (("", "x"), None, " x"),
    ],
)
def test_words_and_piped_text_make_the_prompt(
    home: HomeDir, words: tuple[str, ...], piped: str | None, prompt: str
) -> None:
    assert asked(home, *words, input=piped)[0] == prompt


def test_bytes_that_are_not_utf_8_are_sent_as_escapes_with_a_warning(home: HomeDir) -> None:
    prompt, run = asked(home, "look", input=b"caf\xe9 \xff")
    assert prompt == "look\n\ncaf\\xe9 \\xff"
    assert run.code == 0 and "standard input is not UTF-8 (first at byte 3)" in run.err


def test_words_that_are_not_utf_8_are_sent_as_escapes_with_a_warning(home: HomeDir) -> None:
    prompt, run = asked(home, os.fsdecode(b"caf\xe9"))
    assert prompt == "caf\\xe9" and run.code == 0 and "the prompt is not UTF-8" in run.err


@pytest.mark.parametrize("piped", [None, "", " \n\t"])
def test_no_prompt_at_all_is_a_usage_error(home: HomeDir, piped: str | None) -> None:
    run = cru(home=home, input=piped)
    assert run.code == 2 and "there is no prompt" in run.err and run.out == ""


def test_an_empty_prompt_beside_an_operation_is_no_error(home: HomeDir) -> None:
    assert cru("-c", "work", home=home) == Done(0, "", "")
    assert cru("-c", "work", " ", home=home).code == 0


def test_a_transient_context_alone_is_no_operation(home: HomeDir) -> None:
    assert cru("-C", "work", home=home).code == 2


def test_a_closed_standard_input_is_no_pipe(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        shell = subprocess.run(["sh", "-c", "cru hello <&-"], env=home.env, cwd=home.project, capture_output=True)
    assert (shell.returncode, shell.stdout, shell.stderr) == (0, b"ok\n", b"")
    assert model.requests[0].body["messages"][-1]["content"] == "hello"


def test_on_a_terminal_words_alone_are_the_prompt(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hello", "there", home=home) as terminal:
            terminal.expect("ok")
            assert terminal.wait() == 0
    assert model.requests[0].body["messages"][-1]["content"] == "hello there"


def test_a_large_pipe_arrives_whole(home: HomeDir) -> None:
    text = "\n".join(f"line {n}" for n in range(50_000))
    assert asked(home, input=text)[0] == text


def test_attached_files_reach_the_model(home: HomeDir) -> None:
    (home.project / "a.txt").write_text("content of a")
    (home.project / "b.txt").write_text("content of b")
    prompt, run = asked(home, "--attach", "a.txt", "--attach", "b.txt", "compare")
    assert run.code == 0 and "content of a" in prompt and "content of b" in prompt and "compare" in prompt


@pytest.mark.parametrize(
    ("name", "why"), [("none.txt", "No such file"), (".", "Is a directory"), ("bin", "neither UTF-8 text")]
)
def test_a_file_that_cannot_be_attached_is_named(home: HomeDir, name: str, why: str) -> None:
    (home.project / "bin").write_bytes(b"\xff\xfe")
    prompt, run = asked(home, "--attach", name, "look")
    assert (run.code, prompt) == (2, "") and f"cannot attach {name}: {why}" in run.err
