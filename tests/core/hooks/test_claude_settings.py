"""What settings of Claude Code say beside hooks: rules and variables, and what of them waits for a person."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.claude_world import about, read
from tests.kit import Call, HomeDir, Reply, cru, home, server

from cru.core.guard.rules import RuleLists
from cru.core.hooks.dialects.claude.dialect import DIALECT as CLAUDE
from cru.core.hooks.dialects.claude.permissions import MOST_RULES
from cru.core.hooks.model.entry import HookSource, Layer

HERE = Path("/project")


def rules(layer: Layer = "user", **lists: list[Any]) -> tuple[RuleLists, list[str]]:
    text = msgspec.json.encode({"permissions": lists}).decode()
    file = CLAUDE.parse(HookSource("claude", layer, HERE / ".claude" / "settings.json", text), about(HERE))
    return file.settings.rules, [str(problem) for problem in file.problems if problem.loses_hooks]


# a rule of Claude Code → the first of ours
MAPPED = [
    ("Bash", "bash"), ("Bash(*)", "bash"), ("Bash(rm *)", "bash:rm *"), ("Bash(npm run test:*)", "bash:npm run test *"),
    ("Read", "read"), ("Read(*.key)", "read:*.key"), ("Read(//etc/x)", "read:/etc/x"), ("Read(~/x)", "read:~/x"),
    ("Read(/x)", "read:/project/x"), ("Read(./a/**)", "read:/project/a/**"), ("Read(a/b)", "read:/project/a/b"),
    ("Read(**/.env)", "read:.env"), ("Read(a?.[ch])", "read:a*.*"), ("Edit(x)", "write:x"), ("Write(x)", "write:x"),
    ("WebFetch", "fetch"), ("WebFetch(domain:x.org)", "fetch:*://x.org*"), ("mcp__a__b", "mcp_a_b"), ("mcp__a", "mcp_a_*"),
    ("TodoWrite", "update_todos"), ("Grep", "grep"),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), MAPPED)
def test_a_rule_in_our_writing(theirs: str, ours: str) -> None:
    lists, lost = rules(deny=[theirs])
    assert lists.deny[0] == ours and not lost


@pytest.mark.parametrize("text", ["Bash(", "bash(rm *)", "Nope(x)", 3, "", "Read(!x)", "WebFetch(https://x.org)"])
def test_a_refusal_that_cannot_be_read_is_told_as_lost_and_an_allowance_is_not(text: Any) -> None:
    assert rules(deny=[text])[1] and rules(ask=[text])[1]
    lists, lost = rules(allow=[text])
    assert lists == RuleLists() and not lost


def test_rules_beyond_the_most_that_count_are_told_as_lost() -> None:
    most = [f"Bash(p{number})" for number in range(MOST_RULES)]
    lists, lost = rules(deny=most)
    assert len(lists.deny) == MOST_RULES and not lost
    lists, lost = rules(deny=["Edit(a)"] * (MOST_RULES - 1) + ["Edit(b)"], ask=["Edit(c)"])
    assert any(rule.endswith("b") for rule in lists.deny) and lists.ask == () and len(lost) == 1
    lists, lost = rules(deny=most, ask=["Bash(x)", "Bash(y)"], allow=["Bash(z)"])
    assert (len(lists.deny), lists.ask, lists.allow) == (MOST_RULES, (), ())
    assert len(lost) == 1 and "permissions.ask: rules from here on do not count" in lost[0]


def test_a_misspelt_list_is_lost() -> None:
    assert "did you mean `deny`?" in rules(denny=["Bash"])[1][0]


@pytest.mark.parametrize("value", [5, "Bash", {"a": 1}])
def test_lists_of_a_wrong_type_are_lost(value: Any) -> None:
    assert rules(deny=value)[1]


def test_variables_are_texts() -> None:
    file = CLAUDE.parse(
        HookSource("claude", "user", Path("/x"), '{"env": {"A": "1", "B": 2, "C": true, "D": []}}'), about(HERE)
    )
    assert file.settings.env == {"A": "1", "B": "2", "C": "true"} and len(file.problems) == 1


def test_hooks_are_read_beside_rules_that_cannot_be() -> None:
    entries, problems = read(
        '{"permissions": 5, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'
    )
    assert len(entries) == 1 and problems


# the real command ----------------------------------------------------------------------------------------------------------------


def world(tmp_path: Path, **settings: Any) -> HomeDir:
    here = home(tmp_path)
    (here.project / ".claude").mkdir()
    (here.project / ".claude" / "settings.json").write_bytes(msgspec.json.encode(settings))
    return here


def run(here: HomeDir, command: str, *argv: str) -> tuple[int, str, str]:
    """Exit status, standard error and the result that the model read of one command."""
    with server([Reply(calls=[Call("bash", {"command": command})]), Reply("done")]) as model:
        here.configure('mode = "ask"\n', model.url)
        done = cru(*argv, "go", home=here)
        last = model.requests[-1].body["messages"][-1]["content"] if model.requests else ""
    return done.code, done.err, last


@pytest.mark.slow
def test_what_widens_waits_for_trust_and_is_shown_there(tmp_path: Path) -> None:
    here = world(tmp_path, env={"FOO": "bar"}, permissions={"allow": ["Bash(echo *)"], "deny": ["Bash(rm *)"]})
    _, err, result = run(here, 'echo "<$FOO>"')
    assert "Not allowed by policy" in result and "`cru trust`" in err
    shown = cru("trust", "--show", home=here).out
    assert "! allow bash:echo *" in shown and "! env FOO=bar" in shown
    digest = re.search(r"--yes (\w+)", shown)
    assert digest is not None
    assert cru("trust", "--yes", digest[1], home=here).code == 0
    _, err, result = run(here, 'echo "<$FOO>"')
    assert result == "<bar>" and "cru trust" not in err
    assert "in [permissions] deny of" in run(here, "rm x")[2]
    settings = here.project / ".claude" / "settings.json"
    settings.write_bytes(settings.read_bytes() + b"\n")
    assert "Not allowed by policy" in run(here, 'echo "<$FOO>"')[2]


def test_revoking_takes_it_back(tmp_path: Path) -> None:
    here = world(tmp_path, permissions={"allow": ["Bash(echo *)"]})
    digest = re.search(r"--yes (\w+)", cru("trust", "--show", home=here).out)
    assert digest is not None and cru("trust", "--yes", digest[1], home=here).code == 0
    assert run(here, "echo hi")[2] == "hi"
    assert "forgotten" in cru("trust", "--revoke", home=here).out
    assert "Not allowed by policy" in run(here, "echo hi")[2]


def test_a_rule_that_is_lost_ends_a_strict_run(tmp_path: Path) -> None:
    here = world(tmp_path, permissions={"deny": ["Bash(rm *"]})
    code, err, _ = run(here, "true", "--strict-hooks")
    assert code == 3 and "Bash(rm *" in err
    assert "Bash(rm *" in run(here, "true")[1]
