"""What a person sees of a run is chosen by flags and settings; `--debug` keeps what was sent."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Call, HomeDir, Reply, cru, pty, server

TOOL = Reply("looking", calls=[Call("ls", {})])
THINKING = "think: first\\nsecond\n"


def scripted(home: HomeDir, text: str) -> str:
    path = home.path / "script.txt"
    path.write_text(text)
    return f'model = "scripted:{path}"\n'


@pytest.mark.parametrize(("words", "config"), [(("--no-tool-calls",), ""), ((), "no_tool_calls = true\n")])
def test_without_tools_the_request_has_none_and_a_call_is_refused(
    home: HomeDir, words: tuple[str, ...], config: str
) -> None:
    with server([Reply(calls=[Call("bash", {"command": "touch made"})]), Reply("done")]) as model:
        home.configure(config, url=model.url)
        run = cru("-t", *words, "hi", home=home)
        assert all("tools" not in request.body for request in model.requests) and len(model.requests) == 2
    assert run.out == "done\n" and "no tool may be called in this run" in run.err
    assert not (home.project / "made").exists()


def test_with_tools_the_request_has_them(home: HomeDir) -> None:
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        cru("hi", home=home)
        assert model.requests[0].body["tools"]


@pytest.mark.parametrize(("words", "config"), [(("--hide-tool-calls",), ""), ((), "hide_tool_calls = true\n")])
def test_calls_are_hidden_but_not_what_nobody_decided(home: HomeDir, words: tuple[str, ...], config: str) -> None:
    with server([TOOL, Reply(calls=[Call("bsh", {})]), Reply("done")]) as model:
        home.configure(config, url=model.url)
        run = cru("-v", *words, "hi", home=home)
    assert "[tool ls" not in run.err and "[tool bsh unknown" in run.err and "[model " in run.err


def test_calls_are_hidden_on_a_terminal(home: HomeDir) -> None:
    with server([TOOL, Reply("done")]) as model:
        home.configure(url=model.url)
        with pty("--hide-tool-calls", "hi", home=home) as terminal:
            assert terminal.wait() == 0
            assert "done" in terminal.text and "ls" not in terminal.text


@pytest.mark.parametrize(("words", "config"), [(("--show-thinking",), ""), ((), "show_thinking = true\n")])
def test_reasoning_is_shown_on_stderr(home: HomeDir, words: tuple[str, ...], config: str) -> None:
    home.configure(scripted(home, f"{THINKING}text: done\n") + config)
    run = cru(*words, "hi", home=home)
    assert (run.out, run.err) == ("done\n", "[thinking] first\n[thinking] second\n")


def test_reasoning_is_not_shown_unasked(home: HomeDir) -> None:
    home.configure(scripted(home, f"{THINKING}text: done\n"))
    assert cru("hi", home=home).err == ""


@pytest.mark.parametrize(("words", "config"), [(("--raw",), ""), ((), "render_markdown = false\n")])
def test_raw_is_what_the_model_wrote_without_its_control_characters(
    home: HomeDir, words: tuple[str, ...], config: str
) -> None:
    with server([Reply("# Title\n\n**bold** \x1b[31mred\n\n| a |\n|---|\n", pieces=4)]) as model:
        home.configure(config, url=model.url)
        with pty(*words, "hi", home=home) as terminal:
            assert terminal.wait() == 0
            for part in ("# Title", "**bold** \\x1b[31mred", "| a |", "|---|"):
                assert part in terminal.text


def test_on_a_terminal_markdown_is_rendered_unless_told_otherwise(home: HomeDir) -> None:
    with server([Reply("**bold**")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            assert terminal.wait() == 0
            assert "bold" in terminal.text and "**" not in terminal.text


@pytest.mark.parametrize("env", [{}, {"CRU_VERBOSE": "1"}])
def test_verbose_is_a_setting_too(home: HomeDir, env: dict[str, str]) -> None:
    with server([Reply("done")]) as model:
        home.configure("" if env else "verbose = true\n", url=model.url)
        assert "[model openai_compatible:mock" in cru("hi", home=home, env=env).err


def records(path: Path) -> list[dict[str, Any]]:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("--debug", "request-log"), {"requests.jsonl"}),
        (("--debug", "response-meta"), {"response_meta.jsonl"}),
        (("--debug", "all"), {"requests.jsonl", "response_meta.jsonl"}),
        (("--debug", "request-log, response-meta"), {"requests.jsonl", "response_meta.jsonl"}),
        (("--debug=request-log", "--debug=response-meta"), {"requests.jsonl", "response_meta.jsonl"}),
        ((), set()),
    ],
)
def test_what_was_sent_and_what_is_known_of_the_answer_is_kept(
    home: HomeDir, words: tuple[str, ...], kept: set[str]
) -> None:
    with server([TOOL, Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru(*words, "my key is kit-key", home=home).code == 0
        bodies = [request.body for request in model.requests]
    names = {"requests.jsonl", "response_meta.jsonl"}
    assert {path.name for path in home.context().iterdir()} & names == kept
    if "requests.jsonl" in kept:
        lines = records(home.context() / "requests.jsonl")
        assert [line["body"]["model"] for line in lines] == ["mock", "mock"] and len(lines) == len(bodies)
        assert lines[1]["body"]["messages"][1:] == bodies[1]["messages"][1:] or "[secret]" in str(lines[1]["body"])
    if "response_meta.jsonl" in kept:
        first, last = records(home.context() / "response_meta.jsonl")
        assert (first["reason"], last["reason"], last["error"]) == ("tool_calls", "stop", "") and last["ms"] > 0


def test_keys_are_not_in_the_records(home: HomeDir) -> None:
    with server([Reply("done")]) as model:
        home.configure('api_key = "a-long-secret"\n', url=model.url)
        assert cru("--debug", "all", "my key is a-long-secret", home=home).code == 0
    text = (home.context() / "requests.jsonl").read_text()
    assert "a-long-secret" not in text and "my key is [secret]" in text


@pytest.mark.parametrize(
    ("value", "said"),
    [("request-lgo", "did you mean `request-log`?"), ("", "one of: "), ("md=README.md", "no md=README.md"),
     ("force-markdown", "no force-markdown"), ("all,x", "there is no `x`")],
)  # fmt: skip
def test_a_record_that_there_is_not_is_refused(home: HomeDir, value: str, said: str) -> None:
    run = cru("--debug", value, "hi", home=home)
    assert run.code == 2 and said in run.err
