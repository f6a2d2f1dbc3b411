"""From an empty home to a first answer, at a terminal, without reading anything; and what a run without a terminal says."""

from __future__ import annotations

import os
import signal
import stat

import pytest
from tests.kit import HomeDir, Reply, Terminal, cru, pty, server

KEY = "sk-kit-0123456789"
QUESTION = "Which one shall answer?"


def choose(terminal: Terminal, label: str) -> None:
    """Take a line of the list by its label."""
    terminal.expect("Esc cancels > ")
    terminal.line(label)


def test_a_newcomer_gets_from_an_empty_home_to_an_answer(home: HomeDir) -> None:
    with server([Reply("Welcome.")]) as model:
        model.key = KEY
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("hello")
            terminal.expect(QUESTION)
            choose(terminal, "another server")
            terminal.expect("its address")
            terminal.line(f"127.0.0.1:{model.port}/v1")
            terminal.expect("wants a key (401: who are you?)")
            terminal.expect("(it is not shown) >")
            terminal.line("sk-wrong")
            terminal.expect("does not accept the key")
            terminal.expect("(it is not shown) >")
            terminal.line(KEY)
            terminal.expect(f"Which model? http://127.0.0.1:{model.port} has 1")
            terminal.expect("mock")
            choose(terminal, "")
            terminal.expect("openai_compatible:mock answers from now on")
            terminal.expect("Welcome.")
            assert KEY not in terminal.screen() and "sk-wrong" not in terminal.screen()
            assert terminal.eof() == 0
        [request] = model.requests
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body["messages"][-1]["content"] == "hello"
    keys = home.cru / "keys.json"
    assert KEY in keys.read_text() and stat.S_IMODE(os.stat(keys).st_mode) == 0o600
    config = (home.cru / "config.toml").read_text()
    assert f"http://127.0.0.1:{model.port}/v1" in config and KEY not in config
    assert not any(KEY in path.read_text() for path in home.context().rglob("*.jsonl"))


def test_a_server_that_is_configured_needs_only_its_model_chosen(home: HomeDir) -> None:
    with server([Reply("Here I am.")]) as model:
        with pty("hello", home=home, env={"CRU_BASE_URL": model.url}) as terminal:
            choose(terminal, "1")
            choose(terminal, "mock")
            terminal.expect("openai_compatible:mock answers from now on")
            terminal.expect("Here I am.")
            assert terminal.wait() == 0
    assert (home.cru / "config.toml").read_text() == 'model = "openai_compatible:mock"\n'


@pytest.mark.slow
def test_an_address_and_a_key_may_be_pasted_right_at_the_list(home: HomeDir) -> None:
    with server([Reply("Welcome.")]) as model:
        with pty(home=home, env={"HTTPS_PROXY": "http://127.0.0.1:9"}) as terminal:
            terminal.expect("> ")
            terminal.line("hello")
            terminal.expect("Esc cancels > ")
            terminal.send(f"\x1b[200~{KEY}\x1b[201~")
            terminal.expect("*" * len(KEY))
            terminal.key("enter")
            terminal.expect("> a key of openai")
            terminal.expect("openai at https://api.openai.com/v1 does not answer")
            choose(terminal, f"127.0.0.1:{model.port}/v1")
            choose(terminal, "mock")
            terminal.expect("Welcome.")
            assert KEY not in terminal.text
            assert terminal.eof() == 0
    assert f"http://127.0.0.1:{model.port}/v1" in (home.cru / "config.toml").read_text()


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_told_and_the_list_comes_again(home: HomeDir) -> None:
    with pty(home=home, env={"OPENAI_API_KEY": KEY}) as terminal:
        terminal.expect("> ")
        terminal.line("hello")
        terminal.expect("openai")
        terminal.expect("the key is in OPENAI_API_KEY")
        choose(terminal, "another server")
        terminal.expect("its address")
        terminal.line("http://127.0.0.1:9/v1")
        terminal.expect("does not answer")
        terminal.expect(QUESTION)
        choose(terminal, "no model")
        terminal.expect("I am a script and no model")
        assert terminal.eof() == 0
    assert not (home.cru / "config.toml").exists()


@pytest.mark.parametrize("key", ["esc", "c-c"])
def test_not_now_leaves_the_chat_with_what_there_is_to_do(home: HomeDir, key: str) -> None:
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("hello")
        terminal.expect("Esc cancels > ")
        terminal.key(key)
        terminal.expect("no model is configured")
        terminal.expect_screen("project · ask")
        assert terminal.eof() == 0 and terminal.is_cooked()
    assert not (home.cru / "config.toml").exists()


def test_without_a_terminal_nothing_is_asked(home: HomeDir) -> None:
    run = cru("hello", home=home)
    assert run.code == 5 and "cru: no model is configured\n" in run.err
    assert "`cru` on a terminal leads through it" in run.err and "cru login" in run.err


def test_a_terminal_that_goes_away_at_the_question_ends_it(home: HomeDir) -> None:
    with pty("hello", home=home, is_first_prompt_enough=True) as terminal:
        terminal.expect("Esc cancels > ")
        assert terminal.hang_up() != 0
    assert not (home.cru / "config.toml").exists()


def test_a_signal_at_the_question_gives_the_terminal_back(home: HomeDir) -> None:
    with pty("hello", home=home, is_first_prompt_enough=True) as terminal:
        terminal.expect("Esc cancels > ")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait() == 128 + signal.SIGTERM
        assert terminal.is_cooked()


@pytest.mark.slow
def test_a_server_whose_key_was_kept_is_offered_and_answers(home: HomeDir) -> None:
    with server([Reply("Welcome.")]) as model:
        model.key = KEY
        kept = cru("login", model.url, "--file", home=home, input=f"{KEY}\n")
        assert kept.out.endswith("  next: `cru` in a terminal lets you choose its model\n"), kept
        with pty("hello", home=home) as terminal:
            terminal.expect(QUESTION)
            choose(terminal, model.url)
            terminal.expect(f"Which model? http://127.0.0.1:{model.port} has 1")
            choose(terminal, "mock")
            terminal.expect("Welcome.")
            assert terminal.wait() == 0
        assert model.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        again = cru("login", model.url, "--file", home=home, input=f"{KEY}\n")
        assert again.code == 0 and "next" not in again.out and "answers as before" not in again.out
    assert f'base_url = "{model.url}"' in (home.cru / "config.toml").read_text()
    other = cru("login", "openai", "--file", "--no-check", home=home, input="sk-x\n")
    assert (
        "openai_compatible:mock answers as before; `/model` in the chat lets you choose one of its models" in other.out
    )
