"""`--fail-on-refusal`, and flags that stand behind the prompt."""

from __future__ import annotations

import pytest
from tests.kit import Call, HomeDir, Reply, cru, server

BASH = Call("bash", {"command": "touch made"})


@pytest.mark.parametrize(
    ("flags", "code"), [((), 0), (("--fail-on-refusal",), 3), (("--fail-on-refusal", "-t"), 0)], ids=["not asked", "refused", "allowed"]
)  # fmt: skip
def test_a_refused_call_is_a_failure_if_one_says_so(home: HomeDir, flags: tuple[str, ...], code: int) -> None:
    with server([Reply(calls=[BASH]), Reply("done all the same")]) as model:
        home.configure(url=model.url)
        done = cru(*flags, "go", home=home)
    assert (done.code, done.out) == (code, "done all the same\n")
    assert (home.project / "made").exists() == ("-t" in flags)


def test_a_command_that_merely_fails_is_no_refusal(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "exit 3"})]), Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("--fail-on-refusal", "-t", "go", home=home).code == 0


@pytest.mark.parametrize(
    ("words", "note"), [(("hello", "-t"), "-t stands behind"), (("--", "hello", "-t"), ""), (("hello -t",), ""), (("hello", "-5"), "")]
)  # fmt: skip
def test_a_flag_behind_the_prompt_is_told(home: HomeDir, words: tuple[str, ...], note: str) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        done = cru(*words, home=home)
        assert model.requests[0].body["messages"][-1]["content"] == " ".join(word for word in words if word != "--")
    assert done.code == 0 and (note in done.err if note else done.err == "")
