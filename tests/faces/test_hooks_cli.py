"""`cru hooks list`, `review`, `enable` and `disable`, as a person types them."""

from __future__ import annotations

import pytest
from tests.faces.hooks_home import TOUCH, model, project, ran, rows, trust_all, turn
from tests.kit import HomeDir, cru, pty, trust_project

# list, enable, disable ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_hook_is_left_out_and_comes_back(home: HomeDir) -> None:
    model(home, config="# mine\n[hooks]\ndisabled = []  # none\n")
    project(home)
    trust_all(home)
    only = rows(home)[0]["id"]
    run = cru("hooks", "disable", only.partition("-")[2][:3], home=home)
    assert run.code == 0 and "is disabled" in run.out
    config = (home.cru / "config.toml").read_text()
    assert f'disabled = ["{only}"]' in config and "# mine" in config
    turn(home)
    assert ran(home) == 0 and [row["state"] for row in rows(home)] == ["disabled"]
    assert cru("hooks", "enable", only, home=home).code == 0
    turn(home)
    assert ran(home) == 1


def test_what_is_left_out_of_a_file_is_listed(home: HomeDir) -> None:
    (home.cru).mkdir(exist_ok=True)
    (home.cru / "hooks.json").write_text('{"hooks": [{"event": "tool:befor_call", "command": "true"}]}')
    done = cru("hooks", "list", home=home)
    assert done.out.startswith("left out  there is no event `tool:befor_call`") and "hooks.json:1" in done.out


def test_what_is_left_out_of_a_file_is_a_row(home: HomeDir) -> None:
    (home.cru).mkdir(exist_ok=True)
    (home.cru / "hooks.json").write_text('{"hooks": [{"event": "tool:befor_call", "command": "true"}]}')
    (row,) = rows(home)
    assert (row["id"], row["state"], row["file"], row["line"]) == ("", "left out", str(home.cru / "hooks.json"), 1)
    assert "tool:befor_call" in row["why"]


def test_handlers_of_plugins_are_listed_behind_the_hooks(home: HomeDir) -> None:
    project(home)
    file = home.cru / "plugins" / "demo.lua"
    file.parent.mkdir(parents=True)
    file.write_text("\ncru.on('tool:before_call', function() end, { pattern = 'ba*', priority = 7 })\n")
    done = cru("hooks", "list", home=home)
    assert done.code == 0 and done.out.endswith(
        f"plugin demo  active\n  tool:before_call priority 7 pattern ba* {file}:2\n"
    )
    hook, handler = rows(home)
    assert hook.keys() == handler.keys() and hook["id"].startswith("crush-")
    assert {key: value for key, value in handler.items() if value} == {
        "id": "demo", "state": "active", "dialect": "handler", "layer": "user", "event": "tool:before_call", "matcher": "ba*",
        "type": "handler", "name": "demo", "file": str(file), "line": 2,
    }  # fmt: skip


def test_an_id_that_is_none_names_the_closest(home: HomeDir) -> None:
    project(home)
    only = rows(home)[0]["id"]
    run = cru("hooks", "disable", only[:-1] + "x", home=home)
    assert run.code == 1 and f"did you mean `{only}`?" in run.err
    project(home, "./hook.sh 1", "./hook.sh 2")
    run = cru("hooks", "disable", "crush", home=home)
    assert run.code == 1 and " may be " in run.err


def test_an_id_of_a_hook_that_is_gone_can_be_taken_from_the_list(home: HomeDir) -> None:
    home.configure('[hooks]\ndisabled = ["crush-000000"]\n')
    assert cru("hooks", "enable", "crush-000000", home=home).code == 0
    assert "crush-000000" not in (home.cru / "config.toml").read_text()


def test_a_config_with_hooks_as_a_list_says_how_to_make_room(home: HomeDir) -> None:
    project(home)
    home.configure('[[hooks]]\nevent = "turn:complete"\ncommand = "true"\n')
    run = cru("hooks", "disable", "crush", home=home)
    assert run.code == 1 and "[[hooks.entries]]" in run.err


def test_the_list_for_people(home: HomeDir) -> None:
    assert cru("hooks", "list", home=home).out == "there are no hooks in any file that cru looks at\n"
    project(home, "./hook.sh \x1b[2J")
    run = cru("hooks", home=home)
    assert (
        run.code == 0 and "untrusted" in run.out and "\x1b" not in run.out and f"{home.project}/crush.json:1" in run.out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lst",), "did you mean: cru hooks list"),
        (("review", "--trsut", "x"), "did you mean: cru hooks review --trust"),
        (("review", "--trust"), "--trust needs an id"),
        (("enable",), "needs an id"),
        (("list", "--jsn"), "did you mean: cru hooks list --json"),
    ],
)
def test_words_that_do_not_fit(home: HomeDir, words: tuple[str, ...], said: str) -> None:
    run = cru("hooks", *words, home=home)
    assert run.code == 2 and said in run.err


# review ---------------------------------------------------------------------------------------------------------------------------


def test_without_a_terminal_nothing_is_accepted_unseen(home: HomeDir) -> None:
    project(home)
    run = cru("hooks", "review", home=home)
    assert run.code == 2 and "--trust crush-" in run.err and "1 │ #!/bin/sh" in run.out
    assert [row["state"] for row in rows(home)] == ["untrusted"]


def test_a_person_is_shown_all_and_says_yes_or_no_to_each(home: HomeDir) -> None:
    project(home, './hook.sh "$(date)"', "./hook.sh 2", "./hook.sh 3", script=TOUCH + "# \x1b[2J\n" * 80)
    with pty("hooks", "review", home=home) as terminal:
        terminal.expect("1 of 3")
        terminal.expect('runs       ./hook.sh "$(date)"')
        terminal.expect("# \\x1b[2J")
        terminal.expect("22 more lines")
        terminal.expect("CANNOT SEE what this runs: a command substitution")
        terminal.expect("q quit > ")
        terminal.line("m")
        terminal.expect("q quit > ")
        terminal.line("t")
        terminal.expect("2 of 3")
        terminal.expect("q quit > ")
        terminal.line("r")
        terminal.expect("3 of 3")
        terminal.expect("q quit > ")
        terminal.line("s")
        assert terminal.wait() == 0
    assert [row["state"] for row in rows(home)] == ["active", "refused", "untrusted"]


@pytest.mark.parametrize("words", ["abort", "try it first", "tt", "y", "\x1b[A"])
def test_words_that_only_begin_as_a_key_trust_nothing(home: HomeDir, words: str) -> None:
    project(home, "./hook.sh 1")
    with pty("hooks", "review", home=home) as terminal:
        terminal.expect("q quit > ")
        terminal.line(words)
        terminal.expect("is no answer")
        terminal.expect("q quit > ")
        terminal.line("quit")
        assert terminal.wait() == 0
    assert [row["state"] for row in rows(home)] == ["untrusted"]


def test_what_was_typed_before_a_question_trusts_nothing(home: HomeDir) -> None:
    project(home, "./hook.sh 1", "./hook.sh 2")
    with pty("hooks", "review", home=home, typed="a\nt\nt\n") as terminal:
        terminal.expect("1 of 2")
        terminal.expect("q quit > ")
        terminal.line("q")
        assert terminal.wait() == 0
    assert [row["state"] for row in rows(home)] == ["untrusted", "untrusted"]


def test_a_takes_all_of_the_file_and_the_end_of_input_leaves_the_rest(home: HomeDir) -> None:
    project(home, "./hook.sh 1", "./hook.sh 2")
    (home.project / ".crush.json").write_text('{"hooks": {"PreToolUse": [{"command": "./hook.sh 3"}]}}')
    with pty("hooks", "review", home=home) as terminal:
        terminal.expect("q quit > ")
        terminal.line("a")
        terminal.expect("3 of 3")
        terminal.expect("q quit > ")
        assert terminal.eof() == 0
    assert [row["state"] for row in rows(home)] == ["active", "active", "untrusted"]


@pytest.mark.slow
def test_trust_and_review_know_of_each_other(home: HomeDir) -> None:
    project(home)
    run = cru("trust", home=home)
    assert "1 hook of this project awaits trust: `cru hooks review`" in run.out
    trust_all(home)
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_text('mode = "auto"\n')
    assert "`cru trust`" in cru("hooks", "review", home=home).out
    trust_project(home)
    assert "1 hook of this project: forgotten" in cru("trust", "--revoke", home=home).out
    assert [row["state"] for row in rows(home)] == ["untrusted"]


def test_a_program_that_is_not_known_names_the_closest(home: HomeDir) -> None:
    home.configure('[hooks]\ndialects = ["claud"]\n')
    run = cru("hooks", "list", home=home)
    assert run.code == 1 and "config.toml:2" in run.err and "did you mean `claude`?" in run.err
