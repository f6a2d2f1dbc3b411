"""Options that stand in no table are not covered by the star of an allow rule; what programs are called with every day is. The commands
are in tests/data/permissions/everyday.json and unknown.json."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.core.guard.rules.test_commands import bash, gate

from cru.core.base.files.glob import escape
from cru.core.guard.shell.option_uses import find_option_uses
from cru.core.guard.shell.options import HARMLESS, options_of
from cru.core.guard.shell.programs import COMMANDS, OTHER_NAMES

DATA = Path(__file__).parents[3] / "data/permissions"
EVERYDAY: list[dict[str, Any]] = json.loads((DATA / "everyday.json").read_text())
UNKNOWN: list[dict[str, str]] = json.loads((DATA / "unknown.json").read_text())


@pytest.mark.parametrize("row", EVERYDAY, ids=[row["rule"] for row in EVERYDAY])
def test_what_a_program_is_called_with_every_day_stays_allowed(row: dict[str, Any]) -> None:
    judge = gate(allow=(f"bash:{row['rule']}",))
    asked = [command for command in row["commands"] if bash(judge, command).decision != "allow"]
    assert asked == []


@pytest.mark.parametrize("row", UNKNOWN, ids=[row["command"] for row in UNKNOWN])
def test_an_unknown_option_asks_until_the_rule_writes_it_out(row: dict[str, str]) -> None:
    verdict = bash(gate(allow=(f"bash:{row['rule']}",)), row["command"])
    assert verdict.decision == "ask"
    assert f"no allow rule writes out `{row['option']}`, which is not known to be harmless" in verdict.reason
    words = shlex.split(row["command"])
    named = " ".join(escape(word.replace(" ", "\0")) for word in words)
    assert "\0" in named or bash(gate(allow=(f"bash:{named}*",)), row["command"]).decision == "allow"


def test_the_tables_of_commands_are_large() -> None:
    assert sum(len(row["commands"]) for row in EVERYDAY) >= 400
    assert len(UNKNOWN) >= 130


@pytest.mark.sample(60)
@pytest.mark.parametrize("key", HARMLESS)
def test_a_table_of_harmless_options_can_be_read_and_lists_none_that_does_more(key: str) -> None:
    tables = [COMMANDS[name] for name in {key, key.split()[0]}]
    harmful = {
        option
        for table in tables
        for option in f"{table.runs} {table.writes} {table.sends}".split()
        if "=" not in option.rstrip("=")
    }
    values = options_of(key).harmless
    assert HARMLESS[key] == "" or values or options_of(key).harmless_prefixes
    assert not {option for option in values if option in harmful or f"{option}=" in harmful}


def test_every_program_has_one_name() -> None:
    assert not {key.split()[0] for key in HARMLESS} & set(OTHER_NAMES)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("git log --oneline -- --frob", ""),
        ("git log --grep --frob", ""),
        ("git log --grep=x --frob", "--frob"),
        ("git log --gre=x", "--gre"),
        ("git log --no-oneline", ""),
        ("git log --no-frob", "--no-frob"),
        ("git log -frob", "-f"),
        ("grep -e --frob x", ""),
        ("grep -e-frob x", ""),
        ("grep -ie --frob x", ""),
        ("grep --frob=x", "--frob"),
        ("sort -k --frob x", ""),
        ("sort -uk2 --frob x", "--frob"),
        ("find . -name -frob", ""),
        ("find . --name -frob", ""),
        ("find . -print -frob", "-frob"),
        ("docker run alpine ls --frob", ""),
        ("docker run --name x alpine ls --frob", ""),
        ("docker run --frob alpine", "--frob"),
        ("tar xf -x", ""),
        ("tar xfq a", "xfq"),
        ("npm test --frob", ""),
        ("/usr/bin/git log --frob", "--frob"),
        ("egrep --frob x", "--frob"),
        ("cat - -", ""),
    ],
)
def test_what_stands_behind_an_option_is_its_value(command: str, option: str) -> None:
    uses = find_option_uses(tuple(command.split()))
    assert [use.option for use in uses] == ([option] if option else [])


def test_a_word_of_several_letters_must_be_written_out_to_its_last_unknown_or_dangerous_one() -> None:
    for rule, decision in (("sort -nQ*", "ask"), ("sort -nQo*", "allow"), ("sort -nQoF *", "allow")):
        assert bash(gate(allow=(f"bash:{rule}",)), "sort -nQoF x").decision == decision
    assert bash(gate(allow=("bash:curl -sO*",)), "curl -sOJ https://x").decision == "ask"
    assert bash(gate(allow=("bash:curl -sOJ *",)), "curl -sOJ https://x").decision == "allow"


@pytest.mark.parametrize(
    ("rule", "command", "wider"),
    [
        ("git log *", "git log --frob", "bash:git log --frob *"),
        ("git log *", "git log -3 --frob", "bash:git log * --frob *"),
        ("git log *", "git log --frob=x a", "bash:git log --frob=* *"),
        ("git *", "git lfs pull", "bash:git lfs *"),
        ("git log *", "git log --output=x", "bash:git log --output=* *"),
        ("git log *", "git log --frob --other", ""),
        ("git log * a", "git log --frob a", ""),
        ("sed *", "sed '1e id' x", ""),
    ],
)
def test_the_reason_says_which_rule_would_cover_the_option(rule: str, command: str, wider: str) -> None:
    reason = bash(gate(allow=(f"bash:{rule}",)), command).reason
    assert "no allow rule writes out" in reason
    assert (f"(a rule such as `{wider}` does)" in reason) if wider else "a rule such as" not in reason
    assert not wider or bash(gate(allow=(wider,)), command).decision == "allow"


def test_what_stands_before_a_subcommand_of_a_table_is_in_the_table_too() -> None:
    assert not [
        key for key in HARMLESS for count in range(1, len(key.split())) if " ".join(key.split()[:count]) not in HARMLESS
    ]
