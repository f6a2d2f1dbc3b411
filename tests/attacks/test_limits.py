"""Texts of strangers that cost a reader more than their length: each is read in a time that the loop can spare. What is measured is the
processor's time; the bar is three times the half second that is promised, for slow machines, and what was mended took ten and more."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from tests.permissions.test_commands import bash, gate

from cru.files.glob import BadGlob, expand_braces, matches_path, matches_text, parse_glob, parse_path_glob
from cru.permissions.command_parts import judge_parts
from cru.permissions.protected_writes import may_write_protected
from cru.tools.walk import IgnoreFile, read_rules

SECONDS = 1.5
SIZE = 60_000

COMMANDS = {
    "words": "git " + "a " * (SIZE // 2),
    "commands": "ls;" * (SIZE // 3),
    "lists": "a&&" * (SIZE // 3) + "a",
    "substitutions": "$(" * (SIZE // 3) + ")" * (SIZE // 3),
    "open parentheses": "(" * SIZE,
    "backquotes": "`" * SIZE,
    "braces": "{a," * (SIZE // 3),
    "documents": "".join(f"cat <<A{i}\n" for i in range(5000)),
    "redirections": "> a " * (SIZE // 4),
    "wrappers": "env " * (SIZE // 4) + "rm x",
    "options before a subcommand": "git " + "-C a " * (SIZE // 5) + "push",
    "programs with options": "git -c a " * (SIZE // 9),
    "long options": "git log " + "--outp " * (SIZE // 7),
    "find": "find . " + "-exec a ; " * (SIZE // 10),
    "sed": "sed " + "'s/a/b/;" * (SIZE // 8) + "'",
    "awk": "awk '" + "{print}" * (SIZE // 7) + "'",
    "suspect words": "$x " + "a=b " * (SIZE // 4),
    "suspect options": "$x " + "-Srm " * (SIZE // 5),
    "pipes into a shell": "curl a | sh " * (SIZE // 12),
    "beginnings of a rule": "curl|" * (SIZE // 5),
    "lines of code": "python -c '" + "a;" * (SIZE // 2) + "'",
    "processes": "ps " + "e " * (SIZE // 2),
}
RULES = (
    "bash:rm *",
    "bash:*curl*|*sh*",
    "bash:curl*|*bash*",
    "bash:git push --force *",
    "bash:*x*y*z*w*q*",
    "bash:g*t push*",
)


def within_limit(action: Callable[[], object]) -> float:
    start = process_time()
    action()
    return process_time() - start


@pytest.mark.parametrize("name", COMMANDS)
def test_a_long_command_is_judged_in_time(name: str) -> None:
    judge, text = gate(allow=("bash:git *", "bash:*a*b*c*"), deny=RULES, ask=("bash:sudo *",)), COMMANDS[name]
    assert within_limit(lambda: bash(judge, text)) < SECONDS
    assert within_limit(lambda: judge_parts(judge, "bash", text)) < SECONDS
    assert within_limit(lambda: may_write_protected(text, judge.places)) < SECONDS


def test_a_long_command_is_judged_as_a_short_one() -> None:
    judge = gate(mode="trust", deny=RULES)
    for text in (COMMANDS["wrappers"], COMMANDS["suspect options"], "ls;" * 20_000 + "rm x"):
        assert bash(judge, text).decision == "deny", text[-20:]
    assert bash(judge, "git " + "-C a " * 12_000 + "push --force x").decision == "deny"
    assert bash(judge, "git -C a push --force x").decision == bash(judge, "git -C a push x").decision == "deny"
    assert bash(judge, "git " + "-C a " * 12_000 + "pull x").decision == "allow"


def test_of_a_long_command_few_parts_are_judged_one_by_one() -> None:
    parts = judge_parts(gate(), "bash", COMMANDS["substitutions"])
    assert len(parts.parts) <= 2 and parts.unclear
    many = judge_parts(gate(), "bash", "; ".join(f"ls {i}" for i in range(60)))
    assert (len(many.parts), many.more) == (50, 10)


GLOBS: dict[str, Callable[[], object]] = {
    "stars": lambda: matches_text(parse_glob("*a" * 5000 + "b"), "a" * SIZE),
    "folders": lambda: matches_path(parse_path_glob("**/a/" * 200 + "b"), ("a",) * 2000),
    "open braces": lambda: expand_braces("{" * SIZE),
    "open braces with commas": lambda: expand_braces("{a," * (SIZE // 3)),
}


@pytest.mark.parametrize("name", GLOBS)
def test_a_glob_of_many_stars_or_braces_is_read_in_time(name: str) -> None:
    assert within_limit(GLOBS[name]) < SECONDS


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [("{a,{b}", ["{a,{b}"]), ("a}{b,c}", ["a}b", "a}c"]), ("{{a,b}", ["{a", "{b"]), ("{{a,b},c}", ["a", "b", "c"]), ("{a}", ["{a}"])],
)  # fmt: skip
def test_braces_that_do_not_fit_together_stand_for_themselves(text: str, alternatives: list[str]) -> None:
    assert expand_braces(text) == alternatives
    with pytest.raises(BadGlob):
        expand_braces("{a,b}" * 30)


@pytest.mark.parametrize("line", ["[" * 200_000, "*x" * 100_000, "**/a/" * 40_000 + "b"], ids=["[", "*", "**"])
def test_a_line_of_gitignore_that_no_path_can_match_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / ".gitignore").write_text(f"{line}\n*.log\n")
    rules: list[object] = []
    assert within_limit(lambda: rules.extend(read_rules(str(tmp_path / ".gitignore")))) < SECONDS
    assert len(rules) == 1


def test_a_gitignore_of_four_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / ".gitignore").open("wb") as file:
        os.truncate(file.fileno(), 4 << 30)
    assert within_limit(lambda: IgnoreFile(read_rules(str(tmp_path / ".gitignore")))) < SECONDS
    assert read_rules(str(tmp_path / ".gitignore")) == ()
