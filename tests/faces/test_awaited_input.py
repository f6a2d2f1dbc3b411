"""Commands that read standard input to its end say so while it is open and nothing comes."""

from __future__ import annotations

import os

import pytest
from tests.kit import HomeDir, Reply, cru, server, start, wait_until

WAITS = {
    "a prompt beside words": (("hi",), "and more", "waiting for more of the prompt", "< /dev/null"),
    "a prompt": ((), "hi", "waiting for the prompt", 'cru "PROMPT"'),
    "a JSON object": (
        ("--json-config",), '{"command": {"send_prompt": {"prompt": "hi"}}}', "waiting for a JSON object", "| cru --json-config"
    ),
    "documents": (("oq", ".a"), '{"a": "answer"}', "waiting for documents", "cru oq FILTER FILE"),
    "items": (("batch", "-", "--name", "n", "--dry-run"), '{"prompt": "hi", "id": "answer"}\n', "waiting for the items", "batch FILE"),
    "a key": (("login", "openai", "--no-check", "--file"), "sk-answer-1234\n", "waiting for a key", "cru login PROVIDER < file"),
}  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", WAITS)
def test_an_open_input_without_data_is_announced_and_then_read(home: HomeDir, name: str) -> None:
    argv, data, what, hint = WAITS[name]
    with server(lambda _: Reply("answer")) as model:
        home.configure(url=model.url)
        with start(*argv, home=home, stdin=True) as run:
            wait_until(lambda: what in run.err, what="the announcement")
            assert f"cru: {what}" in run.err and hint in run.err
            run.write(data)
            run.end_input()
            done = run.wait()
    assert done.code == 0 and "waiting" not in done.out, done
    assert name in ("items", "a key") or "answer" in done.out


def test_an_input_that_has_ended_is_not_announced(home: HomeDir) -> None:
    with server(lambda _: Reply("answer")) as model:
        home.configure(url=model.url)
        for given in (None, b"", b"more"):
            assert "waiting" not in cru("hi", home=home, input=given).err
        assert os.path.exists(home.context())
