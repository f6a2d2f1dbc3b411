"""The chat when what it stands on goes away: its context, its home, its disk, its memory."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable

import pytest
from tests.kit import Hang, HomeDir, Reply, Terminal, pty, server, start
from tests.kit.scripts import shebang

SHORT_OF_MEMORY = """{shebang}from cru.core.turn.leg import Leg

prepare, calls = Leg._prepare, []

async def failing(self, resolved, text):
    calls.append(text)
    if len(calls) == 2:
        raise MemoryError
    return await prepare(self, resolved, text)

Leg._prepare = failing
from cru.faces.cli.main import main
main()
"""


def delete_context(home: HomeDir, _pid: int) -> None:
    shutil.rmtree(home.context())


def rename_context(home: HomeDir, _pid: int) -> None:
    home.context().rename(home.context("other"))


def delete_home(home: HomeDir, _pid: int) -> None:
    shutil.rmtree(home.cru)


def fill_disk(_home: HomeDir, pid: int) -> None:
    """No file that the process writes may grow."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))


Trouble = Callable[[HomeDir, int], None]
TROUBLES: tuple[Trouble, ...] = (delete_context, rename_context, delete_home, fill_disk)


def ask(terminal: Terminal, prompt: str, answer: str) -> None:
    terminal.line(prompt)
    terminal.expect(answer)
    terminal.expect("> ")


@pytest.mark.sample(3)
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_help_and_quit_work_whatever_became_of_the_context(home: HomeDir, trouble: Trouble, is_open: bool) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            if is_open:
                ask(terminal, "one", "answer")
            else:
                terminal.send("x")
                terminal.expect("x")  # by now the line editor has the terminal
                terminal.send("\x7f")
            trouble(home, terminal.pid)
            terminal.line("/help")
            terminal.expect("quit the chat; the conversation is kept")
            terminal.expect("Ctrl-D     leaves")
            terminal.line("/quit")
            assert terminal.wait() in (0, 1)  # 1: something of the record is lost, which is told
            assert "Traceback" not in terminal.text and "Exception" not in terminal.text


@pytest.mark.sample(2)
@pytest.mark.parametrize("word", ["/quit", "/exit"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_prompt_that_cannot_be_asked_is_told_and_does_not_hold_up_what_follows(
    home: HomeDir, trouble: Trouble, word: str
) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            ask(terminal, "one", "answer")
            trouble(home, terminal.pid)
            ask(terminal, "two", "cru: ")
            ask(terminal, "three", "cru: ")
            terminal.line(word)
            assert terminal.wait() in (0, 1)
            assert "Traceback" not in terminal.text and "Exception" not in terminal.text
    assert len(model.requests) == 1


def test_a_prompt_that_was_refused_is_not_sent_later(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("answer")]) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            with pty(home=home) as terminal:
                terminal.expect("> ")
                terminal.line("refused")
                terminal.expect(f"process {first.pid}")
                first.interrupt()
                first.wait()
                terminal.line("asked")
                terminal.expect("answer")
                assert terminal.eof() == 0
    assert [m["content"] for m in model.requests[1].body["messages"] if m["role"] == "user"] == ["first", "asked"]


@pytest.mark.slow
def test_a_turn_without_enough_memory_ends_with_an_error_and_the_chat_goes_on(home: HomeDir) -> None:
    script = home.path / "chat"
    script.write_text(SHORT_OF_MEMORY.format(shebang=shebang()))
    script.chmod(0o755)
    with server([Reply("first answer"), Reply("third answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home, script=script) as terminal:
            terminal.expect("> ")
            ask(terminal, "one", "first answer")
            ask(terminal, "two", "cru: there is not enough memory for this turn")
            ask(terminal, "three", "third answer")
            assert terminal.eof() == 0
            assert "Traceback" not in terminal.text
    ends = [
        entry["metadata"]["cause"]
        for entry in home.log()
        if entry.get("role") == "leg_ended" or "cause" in entry.get("metadata", {})
    ]
    assert ends == ["done", "error", "done"]
