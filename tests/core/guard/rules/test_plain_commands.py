"""A deny rule on a command says nothing about operands, messages and documents in a line whose commands are all known. That it finds its
command in each line just beside such a one is in test_evasions.py (the classes `beside known commands`)."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.guard.rules.test_commands import bash, gate

from cru.core.guard.shell.plain_commands import find_every_command

DATA = Path(__file__).parents[3] / "data/permissions"
NOT_MEANT = [(row["rule"], row["command"]) for row in json.loads((DATA / "not_meant.json").read_text())]
"""Everyday commands with a rule that does not mean them."""
MEANT = [
    ("git rm -f *", "git rm $(echo -f) y"),
    ("git push -f *", "git push origin -f > log"),
    ("git rm -f *", "x=-f; git rm $x y"),
    ("git rm -f *", "for x in -f; do git rm $x y; done"),
    ("git rm -f *", 'git rm "$x" -f'),
    ("git rm -f *", "git rm $x --force"),
    ("git rm x*", "y=x; git rm $y"),
    ("docker rm *", "docker rm $(docker ps -aq)"),
    ("docker ps *", "docker rm $(docker ps -aq)"),
    ("docker rm y*", "docker rm $x y"),
    ("docker rm x*", "sh -c 'docker rm x'"),
    ("sh *", "sh -c 'docker rm x'"),
    ("bash -c *", "bash -c 'git rm x'"),
    ("cat *", "git commit -m \"$(cat <<'E'\nx\nE\n)\""),
    ("*secret*", "git log > secret.txt"),
    ("*secret*", "cat > a.md <<'E'\nsecret\nE\n"),
    ("* secret*", "git rm $x # a secret"),
    ("time *", "time git rm $x"),
    ("for *", "for f in a; do git rm $f; done"),
    ("if *", "if git rm $x; then ls; fi"),
    ("while *", "while git rm $x; do ls; done"),
    ("[[ *", "[[ -f x ]] && git rm $x"),
    ("A=*", "A=b git rm $x"),
    ("A=b git *", "A=b git rm $x"),
    ("git * > log", "git rm x > log"),
    ("tee *", "git rm x | tee log"),
    ("read *", "while read -r f; do git rm $f; done"),
    ("sudo *", "sudo git rm $x"),
    ("git rm *", "sudo git rm $x"),
    ("git rm *", "git -C a rm $x"),
    ("git rm *", "env A=b git rm x > log"),
    ("env *", "env A=b git rm x > log"),
]
"""Commands that a rule means in lines of which all commands are known."""


def is_denied(rule: str, command: str) -> bool:
    return bash(gate(mode="trust", deny=(f"bash:{rule}",)), command).decision == "deny"


@pytest.mark.parametrize("rule", sorted({rule for rule, _ in NOT_MEANT}))
def test_operands_messages_and_documents_are_no_commands(rule: str) -> None:
    assert [command for each, command in NOT_MEANT if each == rule and is_denied(rule, command)] == []


@pytest.mark.parametrize(("rule", "command"), MEANT)
def test_a_rule_finds_what_it_means_in_a_line_whose_commands_are_known(rule: str, command: str) -> None:
    assert find_every_command(command) is not None
    assert is_denied(rule, command)


def test_an_ask_rule_reads_the_same() -> None:
    judge = gate(mode="trust", ask=("bash:rm *",))
    assert bash(judge, "docker rm $(docker ps -aq)").decision == "allow"
    assert bash(judge, "docker rm $(rm x)").decision == "ask"


def test_what_is_typed_into_another_program_is_searched_word_by_word() -> None:
    judge = gate(mode="trust", deny=("bash:rm *",))
    assert bash(judge, "git rm x > log").decision == "allow"
    assert judge.judge("bash", "shell", "git rm x > log", receiver="python3").decision == "deny"


def names_of(command: str) -> set[str]:
    """Return the names of the programs of the commands that are known, none if they are not."""
    commands = find_every_command(command) or ()
    return {words[place].rpartition("/")[2] for words, places in commands for place in places}


PIECES = st.sampled_from(
    [
        "git",
        "docker",
        "rm",
        "sh",
        "bash",
        "-c",
        "cat",
        "echo",
        "x",
        "$x",
        '"$x"',
        "$(",
        "`",
        "(",
        ")",
        "{",
        "}",
        ";",
        "|",
        "&&",
        "&",
        "<",
        ">",
        "a.md",
        "log",
        "<<E",
        "<<'E'",
        "E",
        "EOF)",
        "for",
        "in",
        "do",
        "done",
        "while",
        "if",
        "then",
        "fi",
        "read",
        "x=rm",
        "IFS=",
        "[",
        "]",
        "'",
        '"',
        "\\",
        "#",
        "${x:-",
        "env",
        "sudo",
        "tee",
        "'rm>x'",
        "2>&1",
        "<<<",
        "<(",
        ">(",
        "!",
        "time",
        "A=b",
        "xargs",
        "eval",
        "case",
        "esac",
        "x)",
        ";;",
        "f()",
    ]
)
LINE = st.lists(st.tuples(PIECES, st.sampled_from([" ", " ", " ", "\n", ""])), max_size=7).map(
    lambda pieces: "".join(text + blank for text, blank in pieces)
)
AROUND = [
    "git rm $({})",
    "git commit -m \"$(cat <<'E'\n{}\nE\n)\"",
    'for f in {}; do git rm "$f"; done',
    "if {}; then git rm x; fi",
    "sh -c '{}'",
    'bash -c "{}"',
    "cat > a.md <<'E'\n{}\nE\n",
    "cat <<E\n{}\nE\n",
    "while read -r f; do {}; done < log",
    "({}) > log",
    "git rm x # {}",
    "x={}; git rm $x",
    "env A=b {}",
    '[ "$x" = {} ] && git rm y',
]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=1500, deadline=None)
@given(LINE, st.lists(st.sampled_from(AROUND), max_size=3))
def test_bash_runs_only_what_was_found(line: str, around: list[str]) -> None:
    for outer in around:
        line = outer.replace("{}", line)
    if not (expected := names_of(line)):
        return
    # each name that is no builtin is reported by bash's handler for unknown commands
    report = 'exec 9>ran; PATH=/nowhere; command_not_found_handle() { printf "%s\\n" "${1##*/}" >&9; }\n'
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "log").write_text("rm x\nls\n")
        env = {"HOME": folder, "x": "rm", "y": "rm -rf"}
        argv = ["bash", "--norc", "-c", report + line]
        subprocess.run(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
        ran = (Path(folder) / "ran").read_text().split()
    assert set(ran) <= expected
