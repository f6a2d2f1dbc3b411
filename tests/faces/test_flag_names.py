"""Names that chibi has for flags of cru, and those for which cru has nothing."""

from __future__ import annotations

import pytest

from cru.faces.cli.flags import UsageProblem, find, parse
from cru.faces.cli.set_flag import add_setting

CHIBI_FLAGS = {  # the long flags of chibi 0.10 whose names differ from 0.4 -> the letter that does it there and here
    "--ephemeral-context": "-C", "--ephemeral-username": "-U", "--destroy-current-context": "-d", "--destroy-context": "-D",
    "--archive-current-history": "-a", "--archive-history": "-A", "--check-all-inboxes": "-b", "--check-inbox-for": "-B",
    "--set-model": "-m", "--set-model-for-context": "-M", "--force-call-user": "-x", "--force-call-agent": "-X",
    "--no-chibi": "-x", "--force-chibi": "-X",
}  # fmt: skip


@pytest.mark.parametrize(("name", "letter"), CHIBI_FLAGS.items())
def test_the_long_flags_of_chibi_do_what_its_letters_do(name: str, letter: str) -> None:
    flag = find(letter)[0]
    values = tuple("abc"[: len(flag.args)])
    assert parse([name, *values]).flags == ((flag, values),)
    if len(values) == 1:
        assert find(f"{name}=a") == (flag, "a")


@pytest.mark.parametrize("name", ["--flock-create", "--flock-delete", "--flock-join", "--flock-leave", "--flock-list"])
def test_a_flag_of_chibi_for_which_cru_has_nothing_says_what_is_nearest(name: str) -> None:
    with pytest.raises(UsageProblem) as problem:
        parse([name, "team"])
    assert problem.value.message == f"{name}: cru has no groups of contexts (flocks)"
    assert "-P send_message" in problem.value.hint


@pytest.mark.parametrize(
    "line",
    [
        *(f"-a {value} hi" for value in ("never", "on-request", "on-failure", "untrusted")), "-m o3 -a never hi", "-a on-request",
    ],
)  # fmt: skip
def test_the_approval_flag_of_codex_empties_no_conversation(line: str) -> None:
    with pytest.raises(UsageProblem) as problem:
        parse(line.split())
    assert "--mode" in problem.value.hint and "--archive-current-context" in problem.value.hint


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("--sandbox read-only hi", "--mode plan"), ("--sandbox workspace-write", "--sandbox takes no value"),
        ("--sandbox danger-full-access hi", "--no-sandbox"), ("--sandbox=read-only hi", "takes no value"),
        ("--sandbox off hi", "--no-sandbox"),
        ("-y -p hi", "--trust"), ("-y --json hi", "--trust"),
    ],
)  # fmt: skip
def test_a_value_that_another_agent_has_for_a_flag_is_no_prompt(line: str, hint: str) -> None:
    with pytest.raises(UsageProblem) as problem:
        parse(line.split())
    assert hint in f"{problem.value.message}\n{problem.value.hint}"


@pytest.mark.parametrize(
    "line",
    [
        "-a -- never",
        "--archive-current-context never",
        "-a hi",
        "-a never-mind",
        "--sandbox hi",
        "--sandbox -- off",
        "--sandbox -v hi",
        "-s model=read-only hi",
        "-y Terse hi",
    ],
)
def test_other_words_behind_these_flags_are_the_prompt(line: str) -> None:
    assert parse(line.split()).words[-1:] == (line.split()[-1],)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("--fork", "`cru fork`"), ("--sessions", "`cru sessions`"), ("--undo", "`cru undo`"), ("--theme", "/theme in the chat"),
        ("--keys", "`cru login`"), ("--rewind", "`cru undo`"), ("--modle", "--model"), ("--zzz", "`cru help flags`"),
    ],
)  # fmt: skip
def test_an_unknown_flag_names_the_command_of_its_name(name: str, hint: str) -> None:
    with pytest.raises(UsageProblem) as problem:
        parse([name, "hi"])
    assert problem.value.message == f"unknown flag {name}" and hint in problem.value.hint


def test_the_letter_of_codex_for_the_sandbox_says_what_works_here() -> None:
    with pytest.raises(UsageProblem) as problem:
        add_setting({}, "read-only")
    assert "--mode plan" in problem.value.hint
