"""Options of programs that do more than the program's name says: whatever way they are written, no rule for the program covers them, and a
rule that writes them out does. The options are in tests/data/permissions/options.json, from the programs' documents."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.guard.rules.test_commands import bash, gate
from tests.kit.growth import assert_linear

from cru.core.base.files.glob import escape
from cru.core.guard.shell.programs import COMMANDS, OTHER_NAMES
from cru.core.guard.shell.scripts import is_plain_sed

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[3] / "data/permissions/options.json").read_text())


def spellings(option: str, row: dict[str, Any]) -> Iterator[str]:
    """The ways in which a program takes an option: `--name=V` or `-n V` with a value, `--name` or `-n` without."""
    yield option
    name, equals, value = option.partition("=")
    *before, name = name.split(" ") if equals else (option,)
    if equals and name.startswith("-"):
        lengths = range(4, len(name)) if row.get("abbreviated", True) and name.startswith("--") else ()
        for shown in (name, *(name[:length] for length in lengths)):
            yield " ".join((*before, f"{shown}={value}"))
            yield " ".join((*before, shown, value))
    elif option.startswith("-") and len(option.partition(" ")[0]) == 2:
        letter, _, value = option[1:].partition(" ")
        for flags in ("", *row.get("flags", "")):
            yield f"-{flags}{letter} {value}".rstrip()
            if value and " " not in value and not row.get("words"):
                yield f"-{flags}{letter}{value}"


def cases(row: dict[str, Any]) -> Iterator[str]:
    for effect in ("runs", "writes", "sends"):
        for option in row.get(effect, ()):
            yield from dict.fromkeys(spellings(option, row))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row["program"] for row in ROWS])
def test_a_rule_for_a_program_covers_no_option_that_does_more(row: dict[str, Any]) -> None:
    program = row["program"]
    own, wide = gate(allow=(f"bash:{program} *",)), gate(allow=("bash:*e*", "bash:* *"))
    for words in cases(row):
        command = f"{program} {words} x"
        assert bash(own, command).decision == "ask", command
        assert bash(wide, command).decision == "ask", command
        named = escape(" ".join(word.replace(" ", "\0") for word in shlex.split(command)))
        if "$'" not in command and " " not in "".join(shlex.split(command)):
            assert bash(gate(allow=(f"bash:{named} *",)), command).decision == "allow", command


@pytest.mark.parametrize("row", ROWS, ids=[row["program"] for row in ROWS])
def test_a_rule_for_a_program_covers_what_it_is_usually_called_with(row: dict[str, Any]) -> None:
    for words in row.get("plain", ()):
        command = f"{row['program']} {words}".strip()
        assert bash(gate(allow=(f"bash:{row['program']} *",)), command).decision == "allow", command


def test_every_program_of_the_table_is_tried() -> None:
    tried = {row["program"].split()[0] for row in ROWS}
    doing_more = {key for key, facts in COMMANDS.items() if facts.does_more}
    assert {OTHER_NAMES.get(name, name) for name in tried} == {key for key in doing_more if " " not in key}
    untried = {"git annotate", "git commit-tree", "git diagnose"}
    assert {row["program"] for row in ROWS} >= {key for key in doing_more if " " in key} - untried


@pytest.mark.parametrize(
    ("rule", "command", "decision"),
    [
        ("git log --output=out.txt *", "git log --output=out.txt -1", "allow"),
        ("git log --output=out.txt *", "git log --output=out.txt --output=evil", "ask"),
        ("git log --output=*", "git log --output=anything", "allow"),
        ("git log --*", "git log --output=x", "ask"),
        ("git log *", "git log --output=x", "ask"),
        ("sort -o *", "sort -o x y", "allow"),
        ("sort -o x *", "sort -o x -o y z", "ask"),
        ("sed -i *", "sed -i s/a/b/ x", "allow"),
        ("sed -i *", "sed -i '1e id' x", "ask"),
        ("sed -i *", "sed --in-place s/a/b/ x", "ask"),
        ("find * -delete", "find . -name x -delete", "allow"),
        ("find *", "find . -delete", "ask"),
        ("git config *", "git config user.name x", "allow"),
        ("git *", "git config core.pager x", "ask"),
        ("git *", "git config --get user.name", "allow"),
        ("git *", "git config --list", "allow"),
        ("git *", "git submodule status", "allow"),
        ("git *", "git submodule foreach id", "ask"),
        ("git *", "git bisect good", "allow"),
        ("git *", "git bisect run id", "ask"),
        ("git bisect run *", "git bisect run make", "allow"),
        ("git *", "git filter-branch x", "ask"),
        ("git *", "git credential fill", "ask"),
        ("git *", "git difftool -y", "ask"),
        ("git *", "git diff /abs/file", "allow"),
        ("git diff *", "git diff -- .. src", "ask"),
        ("git diff *", "git diff ./.. src", "ask"),
        ("git diff *", "git diff a -- ..", "ask"),
        ("git diff *", "git diff -- .? src", "ask"),
        ("git diff *", "git diff -- .*/key src", "ask"),
        ("git diff *", "git diff main..HEAD -- .gitignore src/..a", "allow"),
        ("git log *", "git log ''*", "ask"),
        ("git log *", 'git log ""[-]*', "ask"),
        ("tar *", "tar cf x.tar ''*", "ask"),
        ("tar *", "tar cf x.tar ./*", "allow"),
        ("make *", "make ''*", "ask"),
        ("make *", "make MAKEFILES=1", "ask"),
        ("make *", "make SHELL:=1", "ask"),
        ("make *", "make V=1 JOBS=no", "allow"),
        ("make *", "make 'X$(shell touch pw)=1'", "ask"),
        ("make *", "make 'MAKEFILES =1'", "ask"),
        ("make *", "make 'MAKEFILES ::=1'", "ask"),
        ("make *", "make '  SHELL=1'", "ask"),
        ("make *", "make PATH=1", "ask"),
        ("make *", "make BASH_ENV=1", "ask"),
        ("make *", "make LD_PRELOAD=1", "ask"),
        ("sort *", 'sort ""?oP', "ask"),
        ("sort *", "sort ./*.txt", "allow"),
        ("sed *", "sed -n -e 'a foo\\' -e 's/x/\ne touch P\n#/' f", "ask"),
        ("sed *", "sed -n -e 'i\\' -e 'y/a/\nw P\n#/' f", "ask"),
        ("sed *", "sed -e '/a\nb/d' f", "ask"),
        ("sed *", "sed -e 's/x/a\\\nb/' -e 's/y/z/' f", "allow"),
        ("sed *", "sed -e 'a\\' -e 'text' f", "allow"),
        ("awk *", "awk -e 'BEGIN{print \"x\" \\' -e '> \"P\"}'", "ask"),
        ("awk *", "awk -e 'BEGIN{x = 1}' -e '{print x}' f", "allow"),
        ("git *", "git diff $HOME/file", "ask"),
        ("git *", "git diff ~/f*", "ask"),
        ("gh *", "gh alias set x '!id'", "ask"),
        ("gh *", "gh auth token", "ask"),
        ("gh *", "gh auth status", "allow"),
        ("gh pr *", "gh pr view 1", "allow"),
        ("dmesg *", "dmesg -C", "ask"),
        ("dc *", "dc -e '!id'", "ask"),
        ("socat *", "socat - EXEC:sh", "ask"),
    ],
)
def test_an_option_must_be_written_out_in_the_rule(rule: str, command: str, decision: str) -> None:
    assert bash(gate(allow=(f"bash:{rule}",)), command).decision == decision


@pytest.mark.slow
def test_a_long_script_is_read_in_one_pass() -> None:
    for script in ("s/{}/x/", "{}", "s/[{}]/x/"):
        for piece in ("[", "q;", "[a]", "1q;"):

            def work(count: int, script: str = script, piece: str = piece) -> Callable[[], object]:
                return lambda: is_plain_sed(script.format(piece * count))

            assert_linear(work, 20_000)
