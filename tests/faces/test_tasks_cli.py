"""`cru tasks` and `cru agents`, beside a run that works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.agents.support import call, configure_scripts, script
from tests.kit import HomeDir, cru, home, start, trust_project
from tests.kit.waiting import wait_until

CARD = "---\ndescription: writes verse\ntools: Read, Grep\n---\nYou write verse.\n"


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    """A model that has a sub-agent work in the background, which says something and goes on for long."""
    made = home(tmp_path)
    child = script(tmp_path, "child", "text: I look\ncall: ls {}\n---\ndelay: 600s\n")
    main = script(
        tmp_path, "main", f"{call('explore', child, background=True)}\n---\ntext: waiting\n---\ntext: so be it\n"
    )
    configure_scripts(made, tmp_path, main)
    return made


def tasks(here: HomeDir) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(cru("tasks", "--json", home=here).out)
    return rows


def working(here: HomeDir) -> bool:
    """Whether the sub-agent has made its call."""
    logs = list(here.context().glob("tasks/*/context.jsonl"))
    return bool(logs) and b"tool_result" in logs[0].read_bytes()


def test_a_task_of_a_run_is_listed_shown_and_ended_by_another_process(here: HomeDir) -> None:
    with start("go", home=here) as run:
        wait_until(lambda: working(here))
        (row,) = tasks(here)
        assert (row["status"], row["agent"], row["context"], row["background"]) == (
            "running",
            "explore",
            "default",
            True,
        )
        shown = cru("tasks", "show", row["id"][:5], home=here).out
        assert shown.startswith(f"task {row['id']}: sub-agent explore, running, started by main\n")
        assert "> do explore\nI look\n[ls {}]\n" in shown
        ended = cru("tasks", "cancel", row["id"], home=here)
        assert (ended.code, ended.out) == (0, f"task {row['id']}: cancelled\n")
        done = run.wait()
    assert (done.code, done.out) == (0, "waiting\nso be it\n")
    assert tasks(here)[0]["status"] == "cancelled"
    assert cru("tasks", "cancel", row["id"], home=here).out == f"task {row['id']} has ended already: cancelled\n"
    followed = cru("tasks", "follow", row["id"], home=here).out
    assert "(empty folder)\n\ncancelled by a person\nused     2 request" in followed
    assert not list(here.context().glob("tasks/control*"))


def test_a_task_whose_run_was_killed_is_lost(here: HomeDir) -> None:
    with start("go", home=here) as run:
        wait_until(lambda: working(here))
        run.kill()
    (row,) = tasks(here)
    assert row["status"] == "lost"
    assert cru("tasks", "cancel", row["id"], home=here).out == f"task {row['id']} has ended already: lost\n"


def test_an_id_that_nobody_has_is_an_error_with_a_way_on(here: HomeDir) -> None:
    run = cru("tasks", "show", "zz", home=here)
    assert (run.code, run.err) == (1, "cru: there is no task zz\n  cru tasks --all says which there are\n")
    assert cru("tasks", home=here).out.startswith("no tasks: ")


@pytest.mark.parametrize("verb", ["show", "follow", "cancel"])
def test_an_empty_id_is_no_task(here: HomeDir, verb: str) -> None:
    with start("go", home=here) as run:
        wait_until(lambda: working(here))
        for text in ("", " "):
            ended = cru("tasks", verb, text, home=here)
            assert ended.code == 2 and f"`cru tasks {verb}` needs an id" in ended.err
        assert tasks(here)[0]["status"] == "running"
        run.kill()


def test_a_record_cannot_write_to_the_terminal(here: HomeDir) -> None:
    with start("go", home=here) as run:
        wait_until(lambda: working(here))
        run.kill()
    (file,) = here.context().glob("tasks/*/task.json")
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "agent": "a\x1b[2J", "parent": "p\x1b[2J"}))
    for words in (("tasks",), ("tasks", "show", record["id"])):
        shown = cru(*words, home=here)
        assert shown.code == 0 and "[2J" in shown.out and "\x1b" not in shown.out


def test_agents_are_listed_with_what_is_wrong_with_them(here: HomeDir) -> None:
    folder = here.project / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "poet.md").write_text(CARD)
    (folder / "broken.md").write_text("no front matter")
    run = cru("agents", home=here)
    assert [line.split()[0] for line in run.out.splitlines()] == ["explore", "general", "plan", "review", "poet"]
    assert f"(not trusted: {folder}/poet.md)" in run.out
    assert (
        f"cru: {folder}/broken.md: no front matter (begin with " in run.err
        and "`cru trust` shows and accepts them" in run.err
    )
    shown = trust_project(here)
    assert "! .claude/agents/poet.md: what a sub-agent is told" in shown.out and "│ You write verse." in shown.out
    (card,) = [row for row in json.loads(cru("agents", "--json", home=here).out)["agents"] if row["name"] == "poet"]
    assert (card["origin"], card["tools"]) == ("project", ["read", "ls", "grep"])
    assert "You write verse." in cru("agents", "show", "poet", home=here).out
    (folder / "poet.md").write_text(CARD + "And more.\n")
    assert "(not trusted:" in cru("agents", home=here).out


@pytest.mark.parametrize("flags", [("--json",), ("--idempotency-key", "k")])
def test_a_run_for_programs_has_the_answers_of_its_sub_agents(tmp_path: Path, flags: tuple[str, ...]) -> None:
    made = home(tmp_path)
    child = script(tmp_path, "child", "call: ls {}\n---\ntext: an empty folder\n")
    main = script(
        tmp_path, "main", f"{call('explore', child, background=True)}\n---\ntext: first\n---\ntext: after it\n"
    )
    configure_scripts(made, tmp_path, main)
    run = cru(*flags, "go", home=made)
    assert run.code == 0 and "after it" in run.out.splitlines()[-1]
    assert [row["result"] for row in tasks(made)] == ["an empty folder"]
    if flags == ("--json",):
        (doing,) = [line for line in map(json.loads, run.out.splitlines()) if line["type"] == "agent:activity"]
        assert doing["payload"] == {"task": tasks(made)[0]["id"], "agent": "explore", "text": "ls"}
