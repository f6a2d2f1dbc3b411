"""Names that chibi has for flags of cru, and those for which cru has nothing."""

from __future__ import annotations

import pytest

from cru.faces.cli.flags import UsageProblem, find, parse

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
