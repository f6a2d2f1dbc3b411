"""What a person and the model hear of sub-agents that are refused something, ended, or stopped by a limit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.core.agents.support import call, configure_scripts, script
from tests.kit import HomeDir, cru, home, pty, start
from tests.kit.waiting import wait_until

WRITE = 'call: write {"file_path": "x", "content": "y"}\n---\ntext: no\n'
HANG = "text: I look\ncall: ls {}\n---\ndelay: 600s\n"


def configured(tmp_path: Path, child: str, config: str = "", agent: str = "general", **more: object) -> HomeDir:
    """A home whose model gives work to one sub-agent, and is done."""
    made = home(tmp_path)
    main = f"{call(agent, script(tmp_path, 'child', child), **more)}\n---\ntext: done\n---\ntext: so be it\n"
    configure_scripts(made, tmp_path, script(tmp_path, "main", main), config)
    return made


def record(here: HomeDir) -> dict[str, object]:
    (file,) = here.context().glob("tasks/*/task.json")
    value: dict[str, object] = json.loads(file.read_text())
    return value


def results(here: HomeDir) -> list[str]:
    return [entry["content"] for entry in here.log() if entry["entry_type"] == "tool_result"]


def is_working(here: HomeDir) -> bool:
    logs = list(here.context().glob("tasks/*/context.jsonl"))
    return bool(logs) and b"tool_result" in logs[0].read_bytes()


@pytest.mark.parametrize("background", [True, False])
def test_what_is_refused_to_a_sub_agent_is_told_with_its_name(tmp_path: Path, background: bool) -> None:
    here = configured(tmp_path, WRITE, background=background)
    done = cru("go", home=here)
    assert done.code == 0
    assert f"[general {record(here)['id']}: tool write policy: " in done.err and "nobody can be asked here" in done.err


def test_what_is_refused_two_agents_deep_is_told_and_in_json(tmp_path: Path) -> None:
    below = script(tmp_path, "below", WRITE)
    here = configured(tmp_path, f"{call('general', below)}\n---\ntext: no\n")
    assert re.search(r"\[general \w+: tool write policy: ", cru("go", home=here).err)
    (tmp_path / "b").mkdir()
    other = configured(tmp_path / "b", WRITE)
    lines = [json.loads(line) for line in cru("--json", "go", home=other).out.splitlines()]
    (failed,) = [line["payload"] for line in lines if line["type"] == "agent:call_failed"]
    assert (failed["agent"], failed["task"], failed["name"], failed["which"]) == (
        "general", record(other)["id"], "write", "policy",
    )  # fmt: skip


def test_switches_of_a_call_are_shown_by_their_names(tmp_path: Path) -> None:
    here = configured(tmp_path, "text: yes\n", 'mode = "trust"\n', background=True, isolation="")
    err = cru("-v", "go", home=here).err
    shown = next(line for line in err.splitlines() if line.startswith("[tool task general"))
    assert "True" not in err and "None" not in shown and "[]" not in shown
    script(
        tmp_path, "main", 'call: bash {"command": "sleep 9", "background": true, "detached": false}\n---\ntext: yes\n'
    )
    assert "[tool bash sleep 9 background]" in cru("-v", "-C", "other", "go", home=here).err


@pytest.mark.parametrize("background", [True, False])
def test_a_sub_agent_that_a_person_ends_is_told_as_cancelled_by_the_user(tmp_path: Path, background: bool) -> None:
    here = configured(tmp_path, HANG, background=background)
    with start("-v", "go", home=here) as run:
        wait_until(lambda: is_working(here))
        task_id = str(record(here)["id"])
        assert cru("tasks", "cancel", task_id[:6], home=here).out == f"task {task_id}: cancelled\n"
        done = run.wait()
    assert done.code == 0 and record(here)["cancelled_by"] == "person"
    texts = [entry["content"] for entry in here.log()]
    (told,) = [text for text in texts if "was cancelled by a person" in text]
    assert "failed" not in told and "I look" in told
    assert f"[general {task_id} was cancelled by a person]" in done.err


def test_a_task_is_ended_in_a_chat_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    here = configured(tmp_path, HANG, background=True)
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("go")
        wait_until(lambda: is_working(here))
        terminal.expect("done")
        task_id = str(record(here)["id"])
        terminal.line(f"/tasks cancel {task_id[:5]}")
        terminal.expect(f"task {task_id} is cancelled")
        assert terminal.eof() == 0
    assert record(here)["cancelled_by"] == "person"


def test_an_id_that_begins_several_names_them(tmp_path: Path) -> None:
    here = home(tmp_path)
    for task_id in ("ab12", "ab13"):
        folder = here.context() / "tasks" / task_id
        folder.mkdir(parents=True)
        (folder / "task.json").write_text(json.dumps({"id": task_id, "kind": "subagent", "prompt": "x"}))
    for verb in ("show", "follow", "cancel"):
        done = cru("tasks", verb, "ab", home=here)
        assert (done.code, done.err) == (1, "cru: ab is the beginning of several ids\n  ab12, ab13\n")


LOOP = 'loop: yes\ncall: ls {}\ncall: glob {"pattern": "*"}\n'


@pytest.mark.parametrize(
    ("card", "config", "place"),
    [
        ("", "[tasks]\nfuel = 1\n", "the setting `tasks.fuel` (-s tasks.fuel=N) allows more"),
        ("fuel: 1\n", "", "`fuel` in "),
        ("", "[tasks]\ntimeout = 0.5\n", "the setting `tasks.timeout` (-s tasks.timeout=N) allows more"),
        ("timeout: 0.5\n", "", "`timeout` in "),
    ],
)
def test_a_limit_that_stops_a_sub_agent_says_where_it_is_set(
    tmp_path: Path, card: str, config: str, place: str
) -> None:
    is_time = "timeout" in card + config
    here = configured(tmp_path, "delay: 600s\n" if is_time else LOOP, config, agent="own")
    file = here.cru / "agents" / "own.md"
    file.parent.mkdir()
    file.write_text(f"---\ndescription: x\n{card}---\nGo.\n")
    assert cru("go", home=here).code == 0
    (result,) = results(here)
    assert place in result and (not card or str(file) in result)
    assert ("out of budget: this task has cost 1 " in result) is not is_time


@pytest.mark.sample(1)
@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize(
    ("child", "config", "why"),
    [
        ("error: 401 bad key\n", "", "error: "),
        (LOOP, "[tasks]\nfuel = 1\n", "out of budget: "),
        ("delay: 600s\n", "[tasks]\ntimeout = 0.5\n", "it took longer than 0.5 s"),
    ],
)
def test_a_sub_agent_that_failed_is_told_to_the_person_and_listed_with_the_reason(
    tmp_path: Path, child: str, config: str, why: str, background: bool
) -> None:
    here = configured(tmp_path, child, config, background=background)
    done = cru("go", home=here)
    told = f"cru: sub-agent general (task {record(here)['id']}) failed: "
    (line,) = [line for line in done.err.splitlines() if line.startswith(told)]
    assert done.code == 0 and why in line
    (row,) = cru("tasks", home=here).out.splitlines()
    assert " failed " in row and row.rstrip("…").endswith(": " + line.removeprefix(told)[:119])
    more = cru("-v", "-C", "other", "go", home=here).err
    assert len([line for line in more.splitlines() if why in line and not line.startswith("[tool task ")]) == 1


@pytest.mark.parametrize(
    ("config", "child", "place"),
    [
        ("[budget]\nmax_tokens = 1\n", "usage: input=5\ncall: ls {}\n---\ntext: never\n", "-s budget.max_tokens=N"),
        (
            "[budget]\nmax_cost = 0.01\n",
            "usage: input=5 cost=1\ncall: ls {}\n---\ntext: never\n",
            "-s budget.max_cost=N",
        ),
        ("max_idle_rounds = 3\n", "loop: yes\ncall: ls {}\n", "max_idle_rounds"),
    ],
)
def test_a_budget_or_a_loop_that_stops_a_sub_agent_names_its_setting(
    tmp_path: Path, config: str, child: str, place: str
) -> None:
    here = configured(tmp_path, child, config)
    main = call("general", f"scripted:{tmp_path}/child.txt")
    script(tmp_path, "main", f"usage: input=0\n{main}\n---\ntext: done\n")
    cru("go", home=here)
    assert record(here)["status"] == "failed" and place in str(record(here)["error"])


def test_a_command_of_a_sub_agent_ends_with_it_and_is_told_so(tmp_path: Path) -> None:
    child = 'call: bash {"command": "sleep 600", "background": true}\n---\ntext: it runs\n'
    here = configured(tmp_path, child, 'mode = "trust"\n')
    done = cru("go", home=here)
    (log,) = here.context().glob("tasks/*/context.jsonl")
    assert "ends when you have ended" in log.read_text()
    assert "command (task " in done.err and ") ended with the agent that started it: sleep 600" in done.err
