"""Sub-agents that do not end, say too much, ask as they are ended, or start one another without measure."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.core.agents.support import call, configure_scripts, script
from tests.kit import HomeDir, cru, home, pty, start
from tests.kit.waiting import wait_until

HANG = "call: ls {}\n---\ndelay: 600s\n"
LATER = "---\ntext: done\n" * 4


def configured(tmp_path: Path, main: str, config: str = 'mode = "trust"\n') -> HomeDir:
    made = home(tmp_path)
    model = script(tmp_path, "main", f"{main}\n{LATER}")
    configure_scripts(made, tmp_path, model, config)
    return made


def tasks(here: HomeDir) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(cru("tasks", "--json", home=here).out)
    return rows


def calls_made(here: HomeDir) -> int:
    return sum(b"tool_call" in log.read_bytes() for log in here.context().glob("tasks/*/context.jsonl"))


@pytest.mark.parametrize("background", [True, False])
def test_who_ends_an_agent_ends_those_below_it(tmp_path: Path, background: bool) -> None:
    below = call("general", script(tmp_path, "below", HANG), background=background)
    child = script(tmp_path, "child", f"{below}\n---\ndelay: 600s\n")
    here = configured(tmp_path, call("general", child, background=True))
    with start("go", home=here) as run:
        wait_until(lambda: calls_made(here) == 2)
        first, second = tasks(here)
        assert cru("tasks", "cancel", first["id"], home=here).code == 0
        assert run.wait().code == 0
    ends = [(row["status"], row["cancelled_by"]) for row in tasks(here)]
    assert second["parent"] == first["id"] and ends[0] == ("cancelled", "person")
    assert ends[1] == ("cancelled", "parent")


STUBBORN = """
import asyncio

async def stubborn(args):
    while True:
        try:
            open("began", "w").close()
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            open("asked", "w").close()

TOOLS = {"stubborn": {"fn": stubborn, "desc": "does not end"}}
"""


@pytest.mark.slow
def test_an_agent_that_ignores_its_end_keeps_nobody(tmp_path: Path) -> None:
    """Its command ignores SIGTERM and SIGINT."""
    command = "trap '' TERM INT; touch began; while :; do sleep 0.1; done"
    child = script(tmp_path, "child", f"call: bash {json.dumps({'command': command})}\n---\ntext: never\n")
    here = configured(tmp_path, call("general", child, background=True))
    with start("go", home=here) as run:
        wait_until((here.project / "began").exists)
        (row,) = tasks(here)
        assert cru("tasks", "cancel", row["id"], home=here).out == f"task {row['id']}: cancelled\n"
        done = run.wait()
    assert done.code == 0 and "done" in done.out and tasks(here)[0]["status"] == "cancelled"


def test_a_tool_that_swallows_the_end_of_its_agent_is_named_and_holds_up_nobody(tmp_path: Path) -> None:
    child = script(tmp_path, "child", "call: stubborn {}\n---\ntext: never\n")
    here = configured(tmp_path, call("general", child, background=True))
    (here.cru / "plugins").mkdir(exist_ok=True)
    (here.cru / "plugins" / "stubborn.py").write_text(STUBBORN)
    with start("go", home=here) as run:
        wait_until((here.project / "began").exists)
        (row,) = tasks(here)
        cru("tasks", "cancel", row["id"], home=here, timeout=60)
        done = run.wait(60)
    assert done.code == 0 and (here.project / "asked").exists()
    assert "did not end and is left" in done.err and tasks(here)[0]["status"] == "cancelled"


@pytest.mark.sample(1)
@pytest.mark.parametrize("background", [True, False])
def test_an_answer_of_ten_megabytes_is_kept_whole_and_told_in_part(tmp_path: Path, background: bool) -> None:
    child = script(tmp_path, "child", f"text: {'x' * 10_000_000}\n")
    here = configured(tmp_path, call("general", child, background=background))
    done = cru("go", home=here, timeout=60)
    assert done.code == 0 and tasks(here)[0]["status"] == "completed"
    (kept,) = here.context().glob("tasks/*/result.md")
    assert kept.stat().st_size == 10_000_000
    assert max(len(entry["content"]) for entry in here.log()) < 60_000
    assert len(cru("tasks", "--json", home=here).out) < 5000


WRITE = 'call: write {"file_path": "x", "content": "y"}\n---\ntext: written\n'


def test_ctrl_c_while_a_sub_agent_asks_ends_both_and_the_chat_goes_on(tmp_path: Path) -> None:
    here = configured(tmp_path, call("general", script(tmp_path, "child", WRITE)), "")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("go")
        terminal.expect("write: x")
        terminal.send("\x03")
        terminal.expect("interrupted")
        terminal.line("and now?")
        terminal.expect("done")
        assert terminal.eof() == 0
    (row,) = tasks(here)
    assert (row["status"], row["cancelled_by"]) == ("cancelled", "turn") and not (here.project / "x").exists()


def test_a_question_goes_away_with_the_sub_agent_that_asked(tmp_path: Path) -> None:
    here = configured(tmp_path, call("general", script(tmp_path, "child", WRITE), background=True), "")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("go")
        terminal.expect("write: x")
        (row,) = tasks(here)
        assert cru("tasks", "cancel", row["id"], home=here).code == 0
        wait_until(lambda: tasks(here)[0]["status"] == "cancelled")
        terminal.line("and now?")
        wait_until(lambda: "and now?" in [entry["content"] for entry in here.log()])
        assert terminal.eof() == 0
    assert not (here.project / "x").exists()
    assert any("was cancelled by a person" in entry["content"] for entry in here.log())


@pytest.mark.slow
def test_of_a_thousand_agents_asked_for_at_once_as_many_run_as_may(tmp_path: Path) -> None:
    child = script(tmp_path, "child", "text: found\n")
    here = configured(tmp_path, "\n".join([call("general", child)] * 1000), "[tasks]\nmax_tasks = 40\n")
    assert cru("go", home=here, timeout=120).code == 0
    results = Counter(
        entry["content"].partition(",")[0] for entry in here.log() if entry["entry_type"] == "tool_result"
    )
    assert results == {"found": 40, "this session has started 40 tasks": 960}
    assert Counter(row["status"] for row in tasks(here)) == {"completed": 40}


def test_an_agent_that_starts_itself_is_stopped_by_the_depth(tmp_path: Path) -> None:
    itself = tmp_path / "child.txt"
    itself.write_text(f"{call('general', f'scripted:{itself}')}\n---\ntext: deep\n")
    here = configured(tmp_path, call("general", f"scripted:{itself}"))
    assert cru("go", home=here).code == 0
    rows = tasks(here)
    assert [row["depth"] for row in rows] == [1, 2] and {row["status"] for row in rows} == {"completed"}
    (log,) = [here.context() / "tasks" / row["id"] / "context.jsonl" for row in rows if row["depth"] == 2]
    assert "there is no tool `task`" in log.read_text()
