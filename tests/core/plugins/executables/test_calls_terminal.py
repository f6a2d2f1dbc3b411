"""Programs that ask the person at the terminal, on a real one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.core.plugins.executables.programs import calls, results, script, shape, tool
from tests.core.plugins.executables.test_calls import until, wait_until_gone
from tests.kit import HomeDir, Terminal, pty
from tests.kit.waiting import wait_until

BOTH = pytest.mark.parametrize("name", ["run_command", "run_command_later"])
COMMAND = '{"command": "echo it ran"}'


@pytest.mark.sample(2)
@BOTH
@pytest.mark.parametrize(
    ("answer", "result"), [("y", "it ran\n"), ("n", "the user said no\n"), ("", "the user said no\n")]
)
def test_a_question_is_answered(home: HomeDir, name: str, answer: str, result: str) -> None:
    shape(home, name)
    script(home, f"call: {name} {COMMAND}", "all done")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("Run echo it ran? [y/N] ")
        asked(terminal)
        terminal.line(answer)
        terminal.expect("all done")
        assert terminal.wait() == 0
    assert results(home) == [result]


@BOTH
def test_the_question_stays_on_the_screen_while_it_is_open(home: HomeDir, name: str) -> None:
    shape(home, name)
    script(home, f"call: {name} {COMMAND}", "all done")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("[y/N] ")
        time.sleep(0.3)  # the face would have shown its progress again by now
        assert terminal.screen().splitlines()[-1].startswith("Run echo it ran? [y/N]")
        terminal.send("y")
        terminal.expect_screen("[y/N] y")  # what is typed is seen
        terminal.key("enter")
        assert terminal.wait() == 0


@pytest.mark.sample(1)
@BOTH
def test_in_the_chat_too_and_the_chat_goes_on(home: HomeDir, name: str) -> None:
    shape(home, name)
    script(home, f"call: {name} {COMMAND}", "all done", "still here")
    with pty("-t", home=home) as terminal:
        terminal.expect("> ")
        terminal.line("go")
        terminal.expect("[y/N] ")
        asked(terminal)
        terminal.line("y")
        terminal.expect("all done")
        terminal.line("and now")
        terminal.expect("still here")
        assert terminal.eof() == 0
    assert results(home) == ["it ran\n"]


@BOTH
def test_nobody_there_means_no(home: HomeDir, name: str) -> None:
    shape(home, name)
    run = calls(home, f"{name} {COMMAND}")
    assert run.code == 0 and results(home) == ["the user said no\n"]


@BOTH
def test_ctrl_d_means_no(home: HomeDir, name: str) -> None:
    shape(home, name)
    script(home, f"call: {name} {COMMAND}", "all done")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("[y/N] ")
        asked(terminal)
        terminal.key("c-d")
        terminal.expect("all done")
        assert terminal.wait() == 0
    assert results(home) == ["the user said no\n"]


@BOTH
def test_ctrl_c_at_the_question_ends_the_program_and_the_turn(home: HomeDir, name: str) -> None:
    shape(home, name)
    script(home, f"call: {name} {COMMAND}", "never")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("[y/N] ")
        asked(terminal)
        terminal.key("c-c")
        assert terminal.wait() == 130
        assert "never" not in terminal.text
    assert "it ran" not in results(home)[0]


def test_ctrl_c_at_a_program_that_asks_nothing_ends_it_with_all_that_it_started(home: HomeDir) -> None:
    tool(home, "hangs", "(timeout 300 sleep 300) & echo $! >child; touch started; wait")
    script(home, "call: hangs", "never")
    with pty("-t", "go", home=home) as terminal:
        until(home.project / "started")
        terminal.key("c-c")
        assert terminal.wait() == 130
    wait_until_gone(home.project / "child")


def test_two_that_ask_are_asked_one_after_the_other(home: HomeDir) -> None:
    for name in ("left", "right"):
        tool(home, name, f'read -rp "{name}? " answer; echo "$CHIBI_TOOL_ARGS {name} $answer"')
    script(home, "call: left\ncall: right", "all done")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("? ")
        first = "left" if "left? " in terminal.text else "right"
        terminal.line("one")
        terminal.expect("right? " if first == "left" else "left? ")
        terminal.line("two")
        terminal.expect("all done")
        assert terminal.wait() == 0
    said = {"left": "one", "right": "two"} if first == "left" else {"left": "two", "right": "one"}
    assert results(home) == [f"{{}} {name} {answer}\n" for name, answer in said.items()] or sorted(
        results(home)
    ) == sorted(f"{{}} {name} {answer}\n" for name, answer in said.items())


def test_a_person_s_time_does_not_count(home: HomeDir) -> None:
    tool(home, "asks", 'read -rp "Well? " answer; echo "$CHIBI_TOOL_ARGS$answer"')
    script(home, "call: asks", "all done", config="[plugins.asks]\ntimeout = 1.5\n")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("Well? ")
        time.sleep(2.0)
        terminal.line("yes")
        terminal.expect("all done")
        assert terminal.wait() == 0
    assert results(home) == ["{}yes\n"]


def test_a_secret_is_not_shown_and_the_terminal_is_as_before(home: HomeDir) -> None:
    tool(home, "secret", 'read -rsp "Password: " answer; echo "$CHIBI_TOOL_ARGS ${#answer}"')
    script(home, "call: secret", "all done")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("Password: ")
        asked(terminal)
        terminal.line("hunter2")
        terminal.expect("all done")
        assert terminal.wait() == 0
        assert "hunter2" not in terminal.text
    assert results(home) == ["{} 7\n"]


def test_a_hook_may_ask_too(home: HomeDir) -> None:
    ask = 'cat >/dev/null; { exec 3<>/dev/tty; } 2>/dev/null && { printf "Send? " >&3; read -r answer <&3; echo "$answer" >answered; }'
    tool(home, "asks", ask, '"hooks": ["pre_message"]')
    script(home, "all done")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("Send? ")
        asked(terminal)
        terminal.line("yes")
        terminal.expect("all done")
        assert terminal.wait() == 0
    assert (home.project / "answered").read_text() == "yes\n"


def test_ctrl_z_stops_both_and_both_go_on(home: HomeDir) -> None:
    tool(home, "asks", 'echo $$ >pid; read -rp "Well? " answer; echo "$CHIBI_TOOL_ARGS$answer"')
    script(home, "call: asks", "all done")
    with pty("-t", "go", home=home) as terminal:
        terminal.expect("Well? ")
        asked(terminal)
        time.sleep(0.2)  # a program that has not gone on yet does not stop again
        terminal.key("c-z")
        wait_state(terminal.pid, "T")
        os.kill(terminal.pid, 18)
        wait_state(terminal.pid, "S")
        time.sleep(0.7)
        terminal.line("yes")
        terminal.expect("all done")
        assert terminal.wait() == 0
    assert results(home) == ["{}yes\n"]


def asked(terminal: Terminal) -> None:
    """Wait until the terminal is the program's, so that keys that are signals go there."""
    wait_until(lambda: os.tcgetpgrp(terminal.descriptor) != terminal.pid, what="the terminal for the program")


def wait_state(pid: int, state: str) -> None:
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == state, what=f"the state {state} of {pid}")
