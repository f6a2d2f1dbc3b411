"""What can only be a command is never sent to the model, and a sentence that begins as a command is."""

from __future__ import annotations

import shlex

import pytest
from tests.kit import HomeDir, Reply, Status, cru, pty, server

from cru.faces.cli.flag_places import refuse_misprint
from cru.faces.cli.flags import UsageProblem


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["version"], "cru --version"), (["exec"], "cru PROMPT"), (["exec", "fix the bug"], "cru 'fix the bug'"),
        (["exec", "--full-auto", "fix it"], "cru PROMPT"), (["exec", "resume", "--last"], "cru resume"),
        (["update"], "as you installed it"), (["upgrade"], "as you installed it"), (["exec", "format", "error"], ""), (["updates"], ""),
        (["update", "the", "docs"], ""), (["hello"], ""),
    ],
)  # fmt: skip
def test_a_command_of_another_agent_is_refused_with_what_works_here(words: list[str], hint: str) -> None:
    if not hint:
        refuse_misprint(words)
        return
    with pytest.raises(UsageProblem, match=f"^there is no command {words[0]}$") as problem:
        refuse_misprint(words)
    assert hint in problem.value.hint and f"as a prompt: {shlex.join(['cru', '--', *words])}" in problem.value.hint


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("resume --last", "`cru resume` does not take --last"), ("resume --last 'go on with it'", "`cru resume` does not take --last"),
        ("clear --force", "`cru clear` does not take --force"),
        ("undo --all", "`cru undo` does not take --all"), ("exec --full-auto", "there is no command exec"),
        ("theme light", "`cru theme` works in the chat only"), ("resume grden", "there is no conversation grden"),
        ("new garden", "there is a conversation garden already"),
    ],
)  # fmt: skip
def test_what_can_only_be_a_command_is_refused_on_every_road(home: HomeDir, line: str, problem: str) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        assert cru("-C", "garden", "one", home=home).code == 0
        for text in ("", "more"):
            run = cru(*shlex.split(line), home=home, input=text)
            assert (run.code, run.out) == (2, "") and problem in run.err and f"as a prompt: cru -- {line}" in run.err
        assert len(model.requests) == 1


def test_a_command_of_another_agent_is_refused_on_a_terminal(home: HomeDir) -> None:
    for word in ("continue", "keys", "ls"):
        with pty(word, home=home) as terminal:
            terminal.expect(f"there is no command {word}")
            assert terminal.wait() == 2


def test_sentences_that_begin_as_commands_are_prompts(home: HomeDir) -> None:
    lines = [
        "new parser for dates, please write it",
        "resume writing the tests",
        "compact the vectors",
        "continue",
        "list the files",
    ]
    with server([Reply("answer") for _ in lines]) as model:
        home.configure(url=model.url)
        for line in lines:
            assert cru(*line.split(), home=home, input="data").out == "answer\n"
        assert [request.body["messages"][-1]["content"] for request in model.requests] == [
            f"{line}\n\ndata" for line in lines
        ]


def test_a_conversation_is_resumed_and_made_by_its_name(home: HomeDir) -> None:
    with server([Status(400), Reply("resumed"), Reply("answer"), Reply("chatted")]) as model:
        home.configure(url=model.url)
        assert cru("-C", "garden", "about plants", home=home).code != 0
        assert cru("resume", "garden", home=home).out == "resumed\n"
        assert cru("-L", home=home).out == "* garden\n"
        run = cru("new", "plans", home=home, input="not read")
        assert (run.code, run.out, run.err) == (0, "", "cru: plans is the current conversation now\n")
        assert cru("hello", home=home).out == "answer\n" and len(home.log("plans")) > 0
        run = cru("resume", "garden", home=home, input="not read")
        assert (run.code, run.out) == (
            0,
            "",
        ) and "garden is the current conversation now; nothing in it is unfinished" in run.err
        with pty("resume", "plans", home=home) as terminal:
            terminal.expect("plans")
            terminal.expect("> ")
            terminal.line("and more")
            terminal.expect("chatted")
            assert terminal.eof() == 0
    assert "* plans" in cru("-L", home=home).out
    run = cru("resume", "gardn", home=home)
    assert run.code == 2 and "did you mean `garden`?" in run.err


def test_a_compaction_keeps_what_the_shell_says(home: HomeDir) -> None:
    with server([Reply("answer"), Reply("answer"), Reply("the summary")]) as model:
        home.configure(url=model.url)
        assert [cru(prompt, home=home).code for prompt in ("one", "two")] == [0, 0]
        run = cru("compact", "keep", "the", "names", home=home)
        assert (
            run.code == 0 and "is compacted" in run.out and "keep the names" in str(model.requests[2].body["messages"])
        )


def test_the_overview_is_one_screen(home: HomeDir) -> None:
    lines = cru("--help", home=home).out.splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 80, [line for line in lines if len(line) > 80]
