"""`cru login`, `cru logout` and /login through the real command."""

from __future__ import annotations

import pytest
from tests.kit import HomeDir, Reply, cru, pty, server

KEY = "sk-kit-0123456789"


def test_a_key_from_a_pipe_is_checked_kept_used_and_forgotten(home: HomeDir) -> None:
    with server([Reply("Good.")]) as model:
        model.key = KEY
        home.configure('api_key = ""\n', url=model.url)
        refused = cru("login", model.url, home=home, input="sk-wrong\n")
        assert refused.code == 1 and "does not accept the key" in refused.err and "sk-wrong" not in refused.err
        assert f"the server at {model.url} does not accept the key" in refused.err, refused
        kept = cru("login", model.url, "--file", home=home, input=f"{KEY}\n")
        assert kept.code == 0 and f"is kept in {home.cru}/keys.json" in kept.out and KEY not in kept.out + kept.err
        assert cru("hello", home=home).out == "Good.\n"
        assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert cru("-n", "list", home=home).out.count(KEY) == 0
        assert "is forgotten" in cru("logout", model.url, home=home).out
        assert (home.cru / "keys.json").read_text().strip() == "{}"


def test_a_key_that_nobody_can_check_is_kept_only_on_request(home: HomeDir) -> None:
    gone = "http://127.0.0.1:9/v1"
    run = cru("login", gone, home=home, input="k\n")
    assert run.code == 1 and "does not answer" in run.err and not (home.cru / "keys.json").exists()
    assert cru("login", gone, "--no-check", "--file", home=home, input="k\n").code == 0


def test_a_key_in_the_environment_is_used_before_a_kept_one_and_that_is_said(home: HomeDir) -> None:
    run = cru("login", "openai", "--no-check", "--file", home=home, input=f"{KEY}\n", env={"OPENAI_API_KEY": "x"})
    assert run.code == 0 and "OPENAI_API_KEY is set, and is used before it" in run.err


@pytest.mark.parametrize(
    ("words", "stdin", "text"),
    [
        (("login", "opnai"), "k\n", "did you mean `openai`?"),
        (("login", "ollama"), "k\n", "ollama needs no key"),
        (("login",), "k\n", "whose key is it?"),
        (("login", "openai"), "\n", "there is no key on standard input"),
        (("logout",), "", "no key is kept"),
        (("/login",), "", "use `cru login`"),
        (("login", "openai", "--no-check"), "a\x1b[2Jb\n", "this is no key"),
        (("login", "openai", "--no-check"), "a\0b\n", "this is no key"),
        (("login", "openai", "--no-check"), "a b\n", "this is no key"),
        (("login", "openai", "--no-check"), b"a\xff\xfe\n", "this is no key"),
        (("login", "openai", "--no-check"), "x" * 5_000 + "\n", "more than 4,096 characters"),
        (("login", KEY), "", "a key is not written on the command line"),
        (("login", "http://u:pw@host/v1", "--no-check"), "k\n", "a user name or password is refused"),
        (("login", "http://[::1", "--no-check"), "k\n", "not a URL"),
        (("login", "http://h:99999/", "--no-check"), "k\n", "not a URL"),
        (("login", "http://h\x1bc/", "--no-check"), "k\n", "may not hold blanks or control characters"),
    ],
)
def test_what_does_not_fit_names_the_next_step(
    home: HomeDir, words: tuple[str, ...], stdin: str | bytes, text: str
) -> None:
    run = cru(*words, home=home, input=stdin)
    assert run.code == 2 and text in run.err and "Traceback" not in run.err and "\x1b" not in run.out + run.err
    assert not (home.cru / "keys.json").exists() and KEY not in run.err and ":pw@" not in run.err


@pytest.mark.slow
def test_login_in_the_chat_is_used_by_the_next_request(home: HomeDir) -> None:
    with server(lambda request: Reply("Good.")) as model:
        model.key = KEY
        home.configure('api_key = ""\n', url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("Good.")
            terminal.line(f"/login {model.url}")
            terminal.expect("(it is not shown) >")
            terminal.line(KEY)
            terminal.expect(f"asking http://127.0.0.1:{model.port} what it has")
            terminal.expect("is kept in")
            terminal.line("two")
            terminal.expect("Good.")
            assert KEY not in terminal.screen() and terminal.eof() == 0
        assert [request.headers.get("authorization", "") for request in model.requests] == ["", f"Bearer {KEY}"]
    assert not any(KEY in path.read_text() for path in [*home.context().rglob("*.jsonl"), home.cru / "chat_history"])


def test_a_key_typed_behind_login_is_in_no_file(home: HomeDir) -> None:
    home.configure(url="http://127.0.0.1:9/v1")
    key = "sk-or-v1-typed-into-the-chat"
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line(f"/login  {key}")
        terminal.expect("a key is not written on the command line")
        assert terminal.eof() == 0
    assert "+/login\n" in (home.cru / "chat_history").read_text()
    assert not [path for path in home.path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def test_login_on_a_terminal_asks_until_the_key_is_accepted_and_shows_none(home: HomeDir) -> None:
    with server([]) as model:
        model.key = KEY
        home.configure(url=model.url)
        with pty("login", model.url, "--file", home=home, is_first_prompt_enough=True) as terminal:
            terminal.expect("(it is not shown) >")
            terminal.line("sk-wrong")
            terminal.expect("does not accept the key")
            terminal.expect("(it is not shown) >")
            terminal.line(KEY)
            terminal.expect("is kept in")
            assert terminal.wait() == 0 and terminal.is_cooked()
            assert KEY not in terminal.screen() and "sk-wrong" not in terminal.screen()


def test_a_pasted_key_says_whose_it_is_or_the_person_does(home: HomeDir) -> None:
    with pty("login", "--no-check", "--file", home=home, is_first_prompt_enough=True) as terminal:
        terminal.expect("key (it is not shown) >")
        terminal.line("abcdef")
        terminal.expect("Whose key is it?")
        terminal.line("anthropic")
        terminal.expect("the key for anthropic is kept in")
        assert terminal.wait() == 0
    with pty("login", home=home, is_first_prompt_enough=True) as terminal:
        terminal.expect("key (it is not shown) >")
        terminal.key("esc")
        terminal.expect("no key is kept")
        assert terminal.wait() == 1 and terminal.is_cooked()
