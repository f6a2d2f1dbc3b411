"""One key answers a question for leave; what was typed in a burst, pasted, or is no key of it answers nothing."""

from __future__ import annotations

import time

import pytest
from tests.kit import Call, HomeDir, Reply, Server, Terminal, pty, server

PROMPT = "no > "
TOUCH = Call("bash", {"command": "touch made"})


def ask(
    home: HomeDir, *keys: str | tuple[str, str], calls: int = 1, env: dict[str, str] | None = None
) -> tuple[Server, Terminal]:
    """A run that asks; keys are pressed when the question stands, of a pair the second one when the first text is shown."""
    with server([*[Reply(calls=[TOUCH])] * calls, Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home, env=env) as terminal:
            for key in keys:
                text, typed = (PROMPT, key) if isinstance(key, str) else key
                terminal.expect(text)
                terminal.send(typed)
            assert terminal.wait() == 0
    return model, terminal


def result(model: Server) -> str:
    return str(model.requests[1].body["messages"][-1]["content"])


@pytest.mark.parametrize(
    ("key", "echo", "kept"),
    [
        ("y", "yes, once", ""),
        ("Y", "yes, once", ""),
        ("s", "session", ""),
        ("p", "project", '"projects"'),
        ("a", "always", '"always"'),
    ],
)
def test_one_key_allows_without_enter(home: HomeDir, key: str, echo: str, kept: str) -> None:
    _, terminal = ask(home, key)
    assert (home.project / "made").exists() and f"{PROMPT}{echo}\n" in terminal.text
    grants = home.cru / "grants.json"
    assert (kept in grants.read_text() and "bash:touch made" in grants.read_text()) if kept else not grants.exists()


def test_n_refuses_at_once_and_r_with_a_reason(home: HomeDir) -> None:
    model, _ = ask(home, "n")
    assert result(model).startswith("The user refused: no reason given")
    model, _ = ask(home, "r", ("the reason, for the model >", "use rm, ö\r"))
    assert result(model) == "The user refused: use rm, ö" and not (home.project / "made").exists()


def test_a_rule_is_edited_before_it_is_kept(home: HomeDir) -> None:
    clear = "\x05\x15"
    _, terminal = ask(
        home, "e", ("bash:touch made", f"{clear}bash:*\r"), ("every call of `bash`", f"{clear}bash:rm *\r"),
        ("does not cover this call", f"{clear}bash:touch *\r"), ("keep it for:", "p"),
    )  # fmt: skip
    grants = (home.cru / "grants.json").read_text()
    assert '"bash:touch *"' in grants and "touch made" not in grants and (home.project / "made").exists()
    assert "n not at all > project" in terminal.text


@pytest.mark.sample(2)
@pytest.mark.parametrize("key", ["x", "y", "yes\r", "\x1b[200~a\x1b[201~", "\r"])
def test_what_is_no_time_to_keep_a_rule_for_is_asked_again(home: HomeDir, key: str) -> None:
    _, terminal = ask(
        home, "e", ("the rule, Esc goes back", "\r"), ("keep it for:", key), ("is none of these", "p"),
    )  # fmt: skip
    assert '"bash:touch made"' in (home.cru / "grants.json").read_text() and (home.project / "made").exists()
    assert "n not at all > project" in terminal.text


def test_an_edit_that_is_left_goes_back_to_the_question(home: HomeDir) -> None:
    model, _ = ask(
        home,
        "e",
        ("the rule, Esc goes back", "\x1b"),
        "e",
        ("the rule, Esc goes back", "\r"),
        ("keep it for:", "n"),
        "e",
        ("the rule, Esc goes back", "\r"),
        ("keep it for:", "\x1b"),
        "n",
    )
    assert result(model).startswith("The user refused") and not (home.cru / "grants.json").exists()


def test_escape_refuses_and_the_model_goes_on(home: HomeDir) -> None:
    model, terminal = ask(home, "\x1b")
    assert result(model).startswith("The user refused") and not (home.project / "made").exists()
    assert "n no > no\r\n" in terminal.text or "n no > no\n" in terminal.text


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("yes", "`yes` came in one go"), ("y\r\r", "came in one go"),
        ("ya", "is no answer"), ("yy", "is no answer"), ("x", "is no answer"), ("ä", "`ä` is no answer"), ("\x1b[A", ""),
        ("\x1b[200~y\x1b[201~", "came in one go"), ("\x1bOP", ""), ("y\ra\r", "is no answer"), ("\x1by", ""), ("\x1b\x1b", ""),
    ],
)  # fmt: skip
def test_what_is_no_single_key_answers_nothing(home: HomeDir, keys: str, told: str) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect(PROMPT)
            terminal.send(keys)
            if told:
                terminal.expect(told)
                terminal.expect("you were typing: Enter ends the answer")
                terminal.expect("n [reason] no > ")
            time.sleep(0.4)
            assert not (home.project / "made").exists()
            terminal.line("n")
            assert terminal.wait() == 0
    assert result(model).startswith("The user refused") and not (home.cru / "grants.json").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", ["y", "y\n", "y\r", "a", "session\n", "y\r\ny\r\n"])
def test_what_is_pasted_answers_nothing_and_the_terminal_is_asked_to_mark_it(home: HomeDir, text: str) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect(PROMPT)
            terminal.paste(text)
            terminal.expect("no answer")
            terminal.expect("n [reason] no > ")
            assert not (home.project / "made").exists() and not terminal.marks_pastes()
            terminal.line("n")
            assert terminal.wait() == 0
    assert result(model).startswith("The user refused") and not (home.cru / "grants.json").exists()


def test_a_paste_that_comes_in_pieces_answers_nothing(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect(PROMPT)
            for piece in ("\x1b[200~", "y", "\r", "\x1b[201~"):
                terminal.send(piece)
                time.sleep(0.35)
            terminal.expect("no answer")
            terminal.expect("n [reason] no > ")
            terminal.line("n")
            assert terminal.wait() == 0
    assert result(model).startswith("The user refused")


def test_enter_behind_a_key_answers_nothing_else(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("hi")
            for _ in range(2):
                terminal.expect(PROMPT)
                terminal.line("y")
            terminal.expect("ok")
            terminal.expect("> ")
            assert terminal.eof() == 0
    assert len(model.requests) == 3 and "nothing was answered" not in terminal.text


def test_a_terminal_that_hands_over_lines_wants_enter(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home, env={"TERM": "dumb"}) as terminal:
            terminal.expect("n [reason] no > ")
            terminal.send("y")
            time.sleep(0.6)
            assert not (home.project / "made").exists()
            terminal.key("enter")
            assert terminal.wait() == 0
    assert (home.project / "made").exists() and len(model.requests) == 2


@pytest.mark.slow
def test_help_names_what_has_effect_only(home: HomeDir) -> None:
    _, terminal = ask(home, "?", "n")
    assert "e       edit the rule" in terminal.text and "r       refuse, with a reason" in terminal.text
    with server([Reply(calls=[Call("write", {"file_path": ".git/x", "content": "x"})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("y once, ? help, r reason, n no > ")
            terminal.send("e")
            terminal.expect("no > ")
            terminal.line("?")
            terminal.expect("s, p, a are missing")
            terminal.expect("no > ")
            terminal.line("n")
            assert terminal.wait() == 0
    assert "edit the rule" not in terminal.text


def test_a_change_is_shown_as_a_diff(home: HomeDir) -> None:
    (home.project / "f").write_text("one\ntwo\nthree\nfour\nfive\n")
    edit = Call("edit", {"file_path": "f", "old_string": "two", "new_string": "2\x1b[2J"})
    write = Call("write", {"file_path": "f", "content": "one\ntwo\nthree\nfour\n5\n"})
    with server([Reply(calls=[Call("read", {"file_path": "f"}), edit]), Reply(calls=[write]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            for _ in range(2):
                terminal.expect(PROMPT)
                terminal.send("n")
            assert terminal.wait() == 0
    assert "  | @@ -1,4 +1,4 @@\n  |  one\n  | -two\n  | +2\\x1b[2J\n  |  three\n" in terminal.text
    assert "  | -five\n  | +5\n" in terminal.text


def test_a_change_of_what_the_model_may_not_read_shows_no_lines_of_it(home: HomeDir) -> None:
    (home.project / "f").write_text("secret\nx\n")
    with server([Reply(calls=[Call("write", {"file_path": "f", "content": "new\n"})]), Reply("ok")]) as model:
        home.configure('[permissions]\ndeny = ["read:f"]\n', url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect(PROMPT)
            terminal.send("n")
            assert terminal.wait() == 0
    assert "  | new\n" in terminal.text and "secret" not in terminal.text


def test_the_parts_of_a_command_say_which_needs_the_question(home: HomeDir) -> None:
    call = Call("bash", {"command": "git status -s && touch made"})
    with server([Reply(calls=[call]), Reply("ok")]) as model:
        home.configure('[permissions]\nallow = ["bash:git status *"]\n', url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect(PROMPT)
            terminal.send("n")
            assert terminal.wait() == 0
    assert "  - allow  git status -s\n  - ask    touch made  (ask mode asks" in terminal.text
