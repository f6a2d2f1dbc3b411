"""Permission questions on a terminal, and what happens without one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.kit import Call, HomeDir, Reply, Server, Terminal, cru, pty, server

from cru.core.guard.rules.gate import PermissionSubject
from cru.faces.cli.dialogs.answers import describe_choices
from cru.faces.cli.dialogs.asker import _has_more, _help

PROMPT = "no > "
TOUCH = Call("bash", {"command": "touch made"})


def result(model: Server, number: int = 1) -> str:
    """What the model read about its last call."""
    return str(model.requests[number].body["messages"][-1]["content"])


def answer(terminal: Terminal, text: str) -> None:
    terminal.expect(PROMPT)
    terminal.line(text)


def test_a_question_names_tool_command_reason_and_choices(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            answer(terminal, "y")
            assert terminal.wait() == 0
    assert "bash: touch made\n" in terminal.text and "ask mode asks before running commands" in terminal.text
    assert (home.project / "made").exists()


@pytest.mark.parametrize(
    ("line", "told"), [("n", "The user refused"), ("no use rm instead", "The user refused: use rm instead")]
)
def test_a_refusal_and_its_reason_reach_the_model(home: HomeDir, line: str, told: str) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            answer(terminal, line)
            assert terminal.wait() == 0
    assert result(model).startswith(told) and not (home.project / "made").exists()


def test_an_answer_that_is_none_is_asked_again(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            for line in ("", "what?", "yep"):
                answer(terminal, line)
            answer(terminal, "Y")
            assert terminal.wait() == 0
    assert (home.project / "made").exists()


def test_a_question_mark_explains_the_choices(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            answer(terminal, "?")
            terminal.expect("p       keep the rule for this project")
            answer(terminal, "n")
            assert terminal.wait() == 0
    assert result(model).startswith("The user refused")


def test_what_will_be_written_is_shown_in_part_and_escaped(home: HomeDir) -> None:
    text = "first\n  y once, n [reason] no > y\n\x1b[2J\x9b\u202e\n" + "more\n" * 50 + "last"
    with server([Reply(calls=[Call("write", {"file_path": "f", "content": text})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("ask mode")
            answer(terminal, "n")
            assert terminal.wait() == 0
    shown = terminal.text.partition("write: f")[2].partition("ask mode")[0]
    assert "  |   y once, n [reason] no > y\n" in shown and "[2J" in shown and "\x9b" not in shown
    assert "… 25 more lines" in shown and "  | last\n" in shown and "m more" in terminal.text
    assert all(line.startswith("  | ") for line in shown.strip("\n ").splitlines()[1:])


def test_an_edit_is_shown_with_its_old_and_its_new_text(home: HomeDir) -> None:
    (home.project / "f").write_text("old\n" * 40)
    edit = Call("edit", {"file_path": "f", "old_string": "old\n" * 40, "new_string": "new\n" * 40})
    with server([Reply(calls=[Call("read", {"file_path": "f"})]), Reply(calls=[edit]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            answer(terminal, "n")
            assert terminal.wait() == 0
    assert "  | -old\n" in terminal.text and "  | +new\n" in terminal.text


@pytest.mark.parametrize("keys", [["m"], ["m", "m"]])
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_all_of_a_long_change_is_shown_on_request_and_then_it_is_asked_again(
    home: HomeDir, keys: list[str], term: str
) -> None:
    content = "".join(f"line {number}\n" for number in range(80))
    with server([Reply(calls=[Call("write", {"file_path": "f", "content": content})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home, env={"TERM": term}) as terminal:
            for key in keys:
                answer(terminal, key)
                if term == "xterm":
                    terminal.expect("Esc cancels > ")
                    terminal.line("a")
                terminal.expect("  | line 45")
                terminal.expect("  | line 79")
            answer(terminal, "y")
            assert terminal.wait() == 0
    assert (home.project / "f").read_text() == content


def test_what_is_shown_whole_is_not_offered_again() -> None:
    small = PermissionSubject("write", "write", "f", "why", preview="one\ntwo")
    cases = {
        small: False,
        replace(small, preview=""): False,
        replace(small, preview="x\n" * 31): True,
        replace(small, preview="x" * 201): True,
        replace(small, preview="", detail="x\n" * 1001): True,
    }
    for subject, has_more in cases.items():
        for by_key in (True, False):
            assert ("m more" in describe_choices(subject, by_key, _has_more(subject))) is has_more
        assert ("show all" in _help(subject, True)) is has_more


def test_a_preview_is_cut_in_length_and_width() -> None:
    from cru.faces.cli.dialogs.asker import _preview

    lines = _preview("\n".join(["x" * 300, *("abcdefghij" * 3), "k", "l"])).splitlines()
    assert lines[0] == f"  | {'x' * 200} … 100 more characters"
    assert len(lines) == 31 and lines[20] == "  | … 3 more lines" and lines[-1] == "  | l"
    assert _preview("") == _preview("\n") == ""
    assert _preview("one\n") == "  | one\n"


LUA = """
return { name = "bank", tools = { pay = { desc = "Pays", fn = function() return "paid" end,
  params = { { name = "amount", type = "number" }, { name = "account", type = "string" }, { name = "token", type = "string" } } } } }
"""
PYTHON = """
PARAMS = [{"name": "amount", "type": "number"}, {"name": "account", "type": "string"}, {"name": "token", "type": "string"}]
TOOLS = {"pay": {"desc": "Pays", "params": PARAMS, "fn": lambda args: "paid"}}
"""
PROGRAM = """#!/bin/sh
if [ "$1" = --schema ]; then echo '{"name": "pay", "description": "Pays", "summary_params": ["account"]}'; else echo paid; fi
"""


@pytest.mark.parametrize(
    ("file", "source", "head"),
    [("bank.lua", LUA, "pay"), ("bank.py", PYTHON, "pay"), ("bank", PROGRAM, "pay:\n  : DE1")],
)
def test_the_whole_call_of_a_plugins_tool_is_shown(home: HomeDir, file: str, source: str, head: str) -> None:
    path = home.cru / "plugins" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    path.chmod(0o755 if file == "bank" else 0o644)
    call = Call("pay", {"amount": 7, "account": "DE1\x1b[2J\n" + "9" * 300, "token": "abcdefgh"})
    with server([Reply(calls=[call]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            answer(terminal, "y")
            assert terminal.wait() == 0
    lines = terminal.text.partition("\n" + head)[2].partition("ask mode")[0].splitlines()[1:]
    shown = {line.split(":")[0] for line in lines if line.startswith("  | ")}
    assert shown == {"  | amount", "  | account", "  | token"} and "  | amount: 7" in lines
    (account,) = [line for line in lines if line.startswith("  | account")]
    assert account.startswith('  | account: "DE1\\u001b[2J\\n999') and account.endswith(" more characters")
    assert '  | token: "[hidden]"' in lines and result(model).strip() == "paid"
    assert file != "bank" or lines[:2] == ["  : " + "9" * 300, account]


def test_what_was_typed_before_the_question_does_not_answer_it(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH], delay=0.3), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("waiting for the model")
            terminal.line("y")
            terminal.expect(PROMPT)
            assert not (home.project / "made").exists()
            terminal.line("n")
            assert terminal.wait() == 0
    assert result(model).startswith("The user refused")


def test_the_end_of_the_input_is_no_permission(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect(PROMPT)
            terminal.key("c-d")
            assert terminal.wait() == 0
    assert not (home.project / "made").exists() and result(model).startswith("Not allowed")


@pytest.mark.parametrize(("choice", "questions"), [("y", 2), ("s", 1)])
def test_an_answer_for_the_session_is_not_asked_again(home: HomeDir, choice: str, questions: int) -> None:
    with server([Reply(calls=[TOUCH]), Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            for _ in range(questions):
                answer(terminal, choice)
            assert terminal.wait() == 0
    assert terminal.text.count(PROMPT) == questions
    assert not (home.cru / "grants.json").exists()


def touch_again(home: HomeDir, choice: str, folder: Path) -> bool:
    """Whether a second run, without a terminal, may do what a first one was allowed to with that answer."""
    with server([Reply(calls=[TOUCH]), Reply("ok")] * 2) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            answer(terminal, choice)
            assert terminal.wait() == 0
        assert "touch made" in (home.cru / "grants.json").read_text()
        (home.project / "made").unlink()
        assert cru("again", home=home, cwd=folder).code == 0
    return (folder / "made").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("choice", ["p", "a"])
def test_answers_for_the_project_and_for_always_are_kept(home: HomeDir, choice: str) -> None:
    assert touch_again(home, choice, home.project)


@pytest.mark.parametrize(("choice", "allowed"), [("p", False), ("a", True)])
def test_only_always_holds_in_another_project(home: HomeDir, choice: str, allowed: bool) -> None:
    other = home.path / "other"
    other.mkdir()
    assert touch_again(home, choice, other) is allowed


SHOWN = [
    ("ls", ["bash: ls"]),
    ("ls" + " " * 300 + "; rm x", ["bash: ls ⟨300 blanks⟩ ; rm x"]),
    ("ls" + "\t" * 40 + "; rm x", ["bash: ls ⟨40 blanks⟩ ; rm x"]),
    ("ls        x\ty", ["bash: ls        x y"]),
    ("ls" + "\n" * 200 + "rm x", ["bash:", "  : ls", "  : ⟨199 empty lines⟩", "  : rm x"]),
    ("ls\n" + " \n\t\n" * 50 + "\n  rm x", ["bash:", "  : ls", "  : ⟨101 empty lines⟩", "  :   rm x"]),
    ("if x\n\n" + " " * 12 + "y", ["bash:", "  : if x", "  : ", "  :             y"]),
    ("a\n" + " " * 100 + "rm x", ["bash:", "  : a", "  : ⟨100 blanks⟩ rm x"]),
    (
        "gi\u200bt l\u00ads\u202e x\u2066y\u3164\u2800z\ufe0f",
        ["bash: gi\\u200bt l\\xads\\u202e x\\u2066y\\u3164\\u2800z\\ufe0f"],
    ),
    ("ls" + "\u00a0" * 3 + "x\U000e0041\ud800", ["bash: ls\\xa0\\xa0\\xa0x\\U000e0041\\ud800"]),
    ("echo 'a\\nb'", ["bash: echo 'a\\nb'"]),
    ("x" * 5000 + "; rm y", ["bash: " + "x" * 5000 + "; rm y", "  (all of it: 5,006 characters, 1 line)"]),
    ("a\n" * 1500 + "rm y", ["bash:", *["  : a"] * 1500, "  : rm y", "  (all of it: 3,004 characters, 1,501 lines)"]),
]


@pytest.mark.parametrize(("command", "lines"), SHOWN, ids=range(len(SHOWN)))
def test_what_a_person_is_asked_is_shown_whole(command: str, lines: list[str]) -> None:
    from cru.core.guard.rules.gate import PermissionSubject
    from cru.faces.cli.dialogs.asker import render_question

    shown = render_question(PermissionSubject("bash", "shell", command, "why", f"bash:{command}"))
    assert shown.split("\n")[1 : len(lines) + 1] == lines
    assert shown.split("\n")[len(lines) + 1] == "  why"
    rule = shown.split("\n")[len(lines) + 2]
    assert rule.startswith("  s, p and a keep the rule  bash:") and rule.endswith(
        lines[-1][-2:] if "(" not in lines[-1] else "y"
    )


def test_a_hostile_command_is_shown_with_its_control_characters_escaped(home: HomeDir) -> None:
    hostile = "rm -rf x #\r\x1b[2K\x1b[1A\n  y once, n [reason] no > y\n\x9b2J\u202e ls"
    with server([Reply(calls=[Call("bash", {"command": hostile})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("  : rm -rf x #\\r\\x1b[2K\\x1b[1A\n")
            terminal.expect("  :   y once, n [reason] no > y\n")
            terminal.expect("  : \\x9b2J\\u202e ls\n")
            terminal.expect("n no > ")
            terminal.send("n")
            assert terminal.wait() == 0
    assert "rm -rf x" in terminal.text


def test_a_call_that_no_rule_can_name_offers_no_rule_to_keep(home: HomeDir) -> None:
    write = Call("write", {"file_path": ".git/hooks/pre-commit", "content": "x"})
    with server([Reply(calls=[write]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("y once, ? help, r reason, n no > ")
            terminal.line("a")
            answer(terminal, "n")
            assert terminal.wait() == 0
    assert result(model).startswith("The user refused")


def test_without_a_terminal_the_call_is_denied_with_the_ways_to_allow_it(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert run.code == 0 and not (home.project / "made").exists()
    for text in (result(model), run.err):
        assert "nobody can be asked here" in text and "`-t`" in text


def test_json_runs_never_ask_on_the_terminal(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("--json", "hi", home=home) as terminal:
            assert terminal.wait() == 0
    assert PROMPT not in terminal.text and "nobody can be asked here" in result(model)


def test_a_pipe_on_stdin_does_not_answer_questions(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        cru("hi", home=home, input="y\ny\ny\n")
    assert not (home.project / "made").exists()


def test_who_decided_stands_in_the_events(home: HomeDir) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("--json", "hi", home=home)
    lines = [msgspec.json.decode(line) for line in run.out.splitlines()]
    resolved = [line["payload"] for line in lines if line["type"] == "permission:resolved"]
    assert [(p["decision"], p["by"]) for p in resolved] == [("deny", "policy")]


ASKS_IN_LUA = 'cru.on("%s", function() return {ask = true, reason = "the guard wants to know"} end)\n'
ASKING_HOOK = {"event": "tool:before_call", "command": """printf '{"decision": "ask"}'"""}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("file", "text", "config"),
    [
        ("hooks.json", msgspec.json.encode({"hooks": [ASKING_HOOK]}).decode(), ""),
        ("plugins/guard.lua", ASKS_IN_LUA % "tool:before_call", 'mode = "trust"\n'),
        ("plugins/guard.lua", ASKS_IN_LUA % "permission:requested", ""),
        ("notes.txt", "", '[permissions]\nask = ["bash:touch *"]\n'),
    ],
    ids=["hook", "handler", "handler of the question", "rule"],
)
def test_what_asks_every_time_offers_no_answer_that_is_kept(home: HomeDir, file: str, text: str, config: str) -> None:
    with server([Reply(calls=[TOUCH]), Reply("ok"), Reply(calls=[TOUCH]), Reply("ok")]) as model:
        home.configure(config, url=model.url)
        path = home.cru / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        with pty("hi", home=home) as terminal:
            for line in ("a", "s", "y"):
                answer(terminal, line)
            assert terminal.wait() == 0
        assert (home.project / "made").exists() and not (home.cru / "grants.json").exists()
        assert "keep the rule" not in terminal.text
        path.unlink()
        home.configure(url=model.url)
        assert "nobody can be asked here" in str(cru("again", home=home)) + result(model)


def test_choices_of_a_plugin_show_what_cannot_be_seen_but_leave_pictures_whole() -> None:
    from cru.faces.cli.dialogs.choices import Choices

    choices = Choices(("gi\u200bt", "\u26a0\ufe0f rm"), ("\u2066x", ""))
    assert choices.lines((0, 1), (), 80) == ["  1  gi\\u200bt  \\u2066x", "  2  \u26a0\ufe0f rm"]
