"""What a review shows, what it accepts, and that neither can be imitated by what is reviewed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.faces.hooks_home import CALLS, TOUCH, foreign, model, project, ran, rows, seen, trust_all, turn
from tests.kit import HomeDir, cru, pty, trust_project

from cru.core.hooks.model.entry import HookEntry, HookSource, number_entries
from cru.faces.cli.hooks.display import fold_line


def own(home: HomeDir, *entries: dict[str, Any]) -> None:
    path = home.project / ".cru" / "hooks.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode({"hooks": entries}))


# what is shown --------------------------------------------------------------------------------------------------------------------


def test_everything_that_decides_is_shown(home: HomeDir) -> None:
    own(
        home,
        {
            "event": "tool:before_call", "matcher": "bash", "command": "sh", "args": ["-c", "a b"], "env": {"A": "1"}, "timeout": 7,
            "async": True, "once": True, "on_error": "deny", "priority": 3, "name": "n",
        },
    )  # fmt: skip
    out = cru("hooks", "review", home=home).out
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith("  ")}
    assert lines["event"] == "tool:before_call" and lines["matcher"] == "bash" and lines["args"] == '["-c", "a b"]'
    assert lines["env"] == '{"A": "1"}' and lines["timeout"] == "7" and lines["async"] == lines["once"] == "true"
    assert lines["on_error"] == "deny" and lines["priority"] == "3" and lines["name"] == "n" and lines["runs"] == "sh"


def test_values_and_contents_cannot_imitate_lines_of_the_review(home: HomeDir) -> None:
    forged = "crush-000000000000@0000  crush\n  runs       true\n  1 │ x\r\x1b2J\u202e\u2028  runs\u200b\u3164x\u0336"
    project(home, f"./hook.sh # {forged}", script=TOUCH + forged)
    path = home.project / "crush.json"
    entry = {"command": "./hook.sh", "matcher": forged, "name": forged}
    path.write_bytes(msgspec.json.encode({"hooks": {"PreToolUse": [entry, {"command": f"true\n{forged}"}]}}))
    run = cru("hooks", "review", home=home)
    heads = [line for line in run.out.splitlines() if not line.startswith(" ")]
    assert len(heads) == 2 and all(head.split("@")[0] in {row["id"] for row in rows(home)} for head in heads)
    assert [line for line in run.out.splitlines() if line.startswith("  runs")] == [
        "  runs       ./hook.sh", "  runs       (its lines, numbered)",
    ]  # fmt: skip
    assert not {"\x1b", "\r", "\u202e", "\u2028", "\u200b", "\u3164", "\u0336"} & set(run.out)


def test_a_long_line_does_not_go_on_at_the_left(home: HomeDir) -> None:
    line = "  123456 │ " + "x" * 60 + "  runs       true"
    assert [*fold_line(line, 0)] == [line]
    pieces = [*fold_line(line, 40)]
    assert all(len(piece) < 40 for piece in pieces) and all(piece.startswith("         ┆ ") for piece in pieces[1:])
    assert "".join([pieces[0], *(piece[11:] for piece in pieces[1:])]) == line
    wide = "  123456 │ " + "漢" * 100
    assert [len(piece) for piece in fold_line(wide, 60)][:2] == [34, 34], "each may be two columns wide"


def test_a_wide_terminal_is_used_and_a_question_mark_tells_what_the_keys_do(home: HomeDir) -> None:
    script = f"#!/bin/sh\necho {'x' * 100}\n"
    project(home, script=script)
    with pty("hooks", "review", home=home, columns=140) as terminal:
        terminal.expect(f"2 │ echo {'x' * 100}")
        terminal.expect("? help · q quit > ")
        terminal.line("?")
        terminal.expect("t  it runs from now on, as it is shown here")
        terminal.expect("s  not now")
        terminal.expect("Enter ends an answer")
        terminal.expect("q quit > ")
        terminal.line("r")
        assert terminal.wait() == 0
    assert [row["state"] for row in rows(home)] == ["refused"]


def test_a_hook_whose_script_is_missing_is_shown_and_accepted_as_such(home: HomeDir) -> None:
    model(home)
    project(home, "./hook.sh", "./gone.sh")
    out = cru("hooks", "review", home=home).out
    gone = f"there is no ./gone.sh (it is looked for in {home.project})"
    assert out.count("  DOES NOT WORK as it stands: ") == 1 and f"  DOES NOT WORK as it stands: {gone}\n" in out, out
    out = trust_all(home).out
    assert out.count("is trusted as shown") == 2 and out.count(f"does not work as it stands: {gone}") == 1, out


def test_without_a_terminal_all_of_a_long_file_is_printed(home: HomeDir) -> None:
    project(home, script=TOUCH + "#\n" * 500 + "# the end\n")
    assert "503 │ # the end" in cru("hooks", "review", home=home).out


# what is accepted -----------------------------------------------------------------------------------------------------------------


def test_an_id_alone_does_not_say_what_was_seen(home: HomeDir) -> None:
    model(home)
    script = project(home)
    only = rows(home)[0]["id"]
    run = cru("hooks", "review", "--trust", only, home=home)
    assert run.code == 2 and "nothing of the content you have seen" in run.err and "1 │ #!/bin/sh" in run.out
    [word] = seen(home)
    script.write_text(TOUCH + "# evil\n")
    run = cru("hooks", "review", "--trust", word, home=home)
    assert run.code == 2 and "is not what it was when it was shown" in run.err and "# evil" in run.out
    assert [row["state"] for row in rows(home)] == ["untrusted"]
    script.write_text(TOUCH)
    assert cru("hooks", "review", "--trust", word, home=home).code == 0
    turn(home)
    assert ran(home) == 1


def test_one_wrong_word_accepts_nothing(home: HomeDir) -> None:
    project(home, "./hook.sh 1", "./hook.sh 2")
    first, second = seen(home)
    assert cru("hooks", "review", "--trust", first, second[:-1] + "x", home=home).code == 2
    assert [row["state"] for row in rows(home)] == ["untrusted", "untrusted"]


def test_two_that_share_an_id_are_two() -> None:
    source = HookSource("crush", "project", "x", "")  # type: ignore[arg-type]
    one = HookEntry(id="crush-1", dialect="crush", event="PreToolUse", source=source, line=1, command="a")
    three = number_entries([one, replace(one, command="b"), replace(one, id="crush-2")])
    assert [entry.id for entry in three] == ["crush-1-1", "crush-1-2", "crush-2"]


# while a session runs -------------------------------------------------------------------------------------------------------------

AGAIN = CALLS + "---\n" + CALLS.partition("\n")[2] + "---\n" + CALLS.partition("\n")[2]


def test_trust_that_is_taken_back_elsewhere_counts_at_once(home: HomeDir) -> None:
    again = f'call: bash {{"command": "{home.path}/revoke"}}\n---\n' + CALLS.partition("\n")[2]
    model(home, "by: order\n" + again)
    project(home)
    trust_all(home)
    text = (home.cru / "trust.json").read_text()
    script = home.path / "revoke"
    script.write_text(f"#!/bin/sh\ncat > {home.cru}/trust.json <<'X'\n{text.replace('true', 'false')}\nX\n")
    script.chmod(0o755)
    run = turn(home)
    assert "your trust in it was taken back" in run.err and ran(home) == 1


@pytest.mark.slow
def test_a_guard_that_changes_denies_until_a_person_has_looked_again(home: HomeDir) -> None:
    model(home, AGAIN.replace("true", "echo x >> done"))
    script = project(home)
    trust_all(home)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("Done.")
        assert ran(home) == 1 and (home.project / "done").read_text() == "x\n"
        script.write_text(TOUCH + "# changed\n")
        text = (home.project / "crush.json").read_text()
        (home.project / "crush.json").write_text(text.replace('"./hook.sh"', '"./hook.sh","matcher":"none"'))
        terminal.line("two")
        terminal.expect("changed since it was trusted")
        terminal.expect("Done.")
        assert ran(home) == 0 and (home.project / "done").read_text() == "x\n"
        trust_all(home)
        terminal.line("three")
        terminal.expect("Done.")
        assert (home.project / "done").read_text() == "x\nx\n"
        assert terminal.eof() == 0


def test_guards_and_what_they_name_are_asked_for_in_auto(home: HomeDir) -> None:
    names = ("hook.sh", "crush.json", ".claude/settings.json", ".cru/hooks.json", "other.txt")
    calls = "".join(f'call: write {{"file_path": "{name}", "content": "x"}}\n---\n' for name in names)
    model(home, f"by: order\n{calls}text: Done.\n")
    project(home, "sh ./hook.sh")
    trust_all(home)
    turn(home, "--mode", "auto")
    assert (home.project / "hook.sh").read_text() == TOUCH and (home.project / "other.txt").read_text() == "x"
    assert not (home.project / ".claude").exists() and "PreToolUse" in (home.project / "crush.json").read_text()


# what a trusted project may not ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_trusted_project_takes_no_guard_of_the_user_away(home: HomeDir) -> None:
    model(home, config='[hooks]\ndialects = ["crush"]\n')
    foreign(home)
    project(home, "env > project.env")
    theirs = {row["layer"]: row["id"] for row in rows(home)}
    (home.project / ".cru").mkdir()
    text = f'[hooks]\ndialects = []\nenv_pass = ["OPENAI_API_KEY"]\ndisabled = {list(theirs.values())}\n'
    (home.project / ".cru" / "config.toml").write_text(text)
    trust_project(home)
    run = turn(home, env={"OPENAI_API_KEY": "key-1"})
    assert ran(home) == 1 and "`hooks.env_pass` is ignored" in run.err
    assert {row["layer"]: row["state"] for row in rows(home)} == {"user": "active", "project": "disabled"}
    (home.project / ".cru" / "config.toml").write_text('[hooks]\nenv_pass = ["OPENAI_API_KEY"]\n')
    trust_project(home)
    trust_all(home)
    turn(home, env={"OPENAI_API_KEY": "key-1"})
    assert "key-1" not in (home.project / "project.env").read_text()
