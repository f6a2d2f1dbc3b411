"""Sub-agents in the chat: what is shown of them, their questions, and answers that come while a person types."""

from __future__ import annotations

import json
import os
import termios
from pathlib import Path

from tests.core.agents.support import call, configure_scripts, script
from tests.kit import HomeDir, cru, home, pty
from tests.kit.waiting import wait_until

from cru.faces.cli.terminal.keyboard import input_mode

WAIT = "while [ ! -e go ]; do sleep 0.02; done"


def configured(tmp_path: Path, main: str, child: str, config: str = "") -> HomeDir:
    made = home(tmp_path)
    model = script(
        tmp_path, "main", main.replace("TASK", call("general", script(tmp_path, "child", child), background=True))
    )
    configure_scripts(made, tmp_path, model, config)
    return made


def test_an_answer_that_comes_while_a_person_types_starts_a_turn_and_what_was_typed_stays(tmp_path: Path) -> None:
    child = f"call: bash {json.dumps({'command': WAIT})}\n---\ntext: found it\n"
    here = configured(
        tmp_path, "TASK\n---\ntext: I wait for it\n---\ntext: it was found\n---\ntext: bye\n", child, 'mode = "trust"\n'
    )
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("look")
        terminal.expect("I wait for it")
        terminal.expect("> ")
        terminal.send("and then")
        terminal.expect("and then")
        (here.project / "go").touch()
        terminal.expect("it was found")
        terminal.expect("and then")
        terminal.line(" go home")
        terminal.expect("bye")
        assert terminal.eof() == 0
    prompts = [entry["content"] for entry in here.log() if entry.get("role") == "user"]
    assert prompts[0] == "look" and prompts[1].endswith("is done]\nfound it") and prompts[2] == "and then go home"


def test_a_question_of_a_sub_agent_stands_above_the_prompt_and_names_it(tmp_path: Path) -> None:
    child = 'call: write {"file_path": "x", "content": "y"}\n---\ntext: written\n'
    here = configured(tmp_path, "TASK\n---\ntext: I wait for it\n---\ntext: it is there\n", child)
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("go")
        terminal.expect("[sub-agent general ")
        terminal.expect("write: x")
        terminal.expect("no > ")
        terminal.line("y")
        terminal.expect("it is there")
        assert terminal.eof() == 0
    assert (here.project / "x").read_text() == "y"


def test_tasks_are_listed_and_ended_with_the_chat(tmp_path: Path) -> None:
    child = f"call: bash {json.dumps({'command': 'touch began; ' + WAIT})}\n---\ntext: never\n"
    here = configured(tmp_path, "TASK\n---\ntext: I wait for it\n", child, 'mode = "trust"\n')
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("look")
        terminal.expect("general")
        terminal.expect("begins in the background")
        terminal.expect("I wait for it")
        wait_until((here.project / "began").exists)
        terminal.line("/tasks")
        terminal.expect("running")
        terminal.line("/agents")
        terminal.expect("explore ")
        assert terminal.eof() == 0
        assert "sub-agent general ended with the session: do general" in terminal.text
        assert "was cancelled with the session" not in terminal.text
    record = json.loads(next(here.context().glob("tasks/*/task.json")).read_text())
    assert record["status"] == "cancelled"


def test_a_session_that_has_started_no_task_says_so(tmp_path: Path) -> None:
    here = configured(tmp_path, "text: I do it myself\n", "text: hi\n")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("look")
        terminal.expect("I do it myself")
        terminal.line("/tasks")
        terminal.expect("no task was started in this session")
        assert terminal.eof() == 0


def test_tasks_of_earlier_sessions_are_pointed_to(tmp_path: Path) -> None:
    here = configured(tmp_path, "TASK\n---\ntext: begun\n---\ntext: heard\n", "text: hi\n")
    assert cru("go", home=here).code == 0
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("/tasks")
        terminal.expect("no task was started in this session; `cru tasks` lists 1 of earlier ones")
        assert terminal.eof() == 0


def test_agents_in_the_chat_stand_in_columns_with_those_that_await_trust(tmp_path: Path) -> None:
    here = configured(tmp_path, "text: hi\n", "text: hi\n")
    for folder, name in ((here.cru, "a-very-long-name-of-an-agent"), (here.project / ".cru", "theirs")):
        (folder / "agents").mkdir(parents=True)
        (folder / "agents" / f"{name}.md").write_text(f"---\nname: {name}\ndescription: Does it\n---\nDo it.\n")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("/agents")
        terminal.expect("theirs")
        terminal.expect("Does it (not trusted: `cru trust`)")
        assert terminal.eof() == 0
    lines = [line for line in terminal.text.splitlines() if line.startswith(("a-very", "theirs"))]
    assert len({line.index("Does it") for line in lines}) == 1 and len(lines) == 2


def test_a_mode_of_the_terminal_that_ends_leaves_the_one_that_began_later() -> None:
    """A question of a sub-agent stands when the turn ends in which it came up."""
    leader, fd = os.openpty()
    try:
        before = termios.tcgetattr(fd)
        turn, question = input_mode(fd, "kept"), input_mode(fd, "lines")
        turn.__enter__()
        question.__enter__()
        asking = termios.tcgetattr(fd)
        turn.__exit__(None, None, None)
        assert termios.tcgetattr(fd) == asking and asking[3] & termios.ICANON
        question.__exit__(None, None, None)
        assert termios.tcgetattr(fd) == before
    finally:
        os.close(leader)
        os.close(fd)
