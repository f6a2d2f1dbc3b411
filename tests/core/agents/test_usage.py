"""What sub-agents have used is known in every later process: in their records, and in sums over a tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.agents.support import call, configure_scripts, script
from tests.kit import HomeDir, cru, home, start
from tests.kit.waiting import wait_until

MAIN = "usage: input=1000 output=100 cost=0.01\n"
CHILD = "usage: input=2000 output=200 cost=0.02\n"
DEEPEST = "usage: input=4000 output=400 cost=0.04\n"


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    """A main agent, an agent below it and one below that one; each asks twice, the deepest one once."""
    made = home(tmp_path)
    deepest = script(tmp_path, "deepest", f"{DEEPEST}text: found\n")
    child = script(tmp_path, "child", f"{CHILD}{call('general', deepest)}\n---\n{CHILD}text: below\n")
    main = script(tmp_path, "main", f"{MAIN}{call('general', child)}\n---\n{MAIN}text: done\n")
    configure_scripts(made, tmp_path, main)
    return made


def tasks(here: HomeDir) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(cru("tasks", "--json", home=here).out)
    return rows


def test_cost_and_trace_of_a_later_process_have_the_sub_agents(here: HomeDir) -> None:
    assert cru("go", home=here).code == 0
    lines = [line.split("  ") for line in cru("/cost", home=here).out.splitlines()]
    rows = {words[0].strip() or words[1].strip(): words[-1] for words in lines}
    everything = "5 requests, 10000 tokens in (0 cached), 1000 out, $0.10"
    assert rows["last prompt"].strip() == everything and rows["recorded here"].strip() == everything
    assert rows["2 sub-agents"].strip() == "3 requests, 8000 tokens in (0 cached), 800 out, $0.08"
    traced = cru("trace", home=here).out.splitlines()
    assert "2 requests" in traced[0] and "$0.02" in traced[0]
    assert traced[1] == "2 sub-agents: 3 requests; 8000 tokens in (0 cached), 800 out, $0.08 (`cru tasks`)"


def test_only_the_agents_of_the_last_prompt_are_in_its_sum(here: HomeDir, tmp_path: Path) -> None:
    cru("go", home=here)
    script(tmp_path, "main", f"loop: yes\n{MAIN}text: done\n")
    cru("again", home=here)
    rows = cru("/cost", home=here).out.splitlines()
    assert rows[0].endswith("1 request, 1000 tokens in (0 cached), 100 out, $0.01") and "6 requests" in rows[1]
    assert "sub-agent" not in cru("trace", home=here).out
    assert "2 sub-agents" in cru("trace", "--turn", "1", home=here).out


def test_each_task_has_its_own_requests_and_shows_those_below(here: HomeDir) -> None:
    cru("go", home=here)
    first, second = tasks(here)
    assert (first["usage"]["requests"], first["usage"]["input"], first["usage"]["cost"]) == (2, 4000, 0.04)
    assert (second["usage"]["requests"], second["usage"]["output"], second["usage"]["cost"]) == (1, 400, 0.04)
    shown = cru("tasks", "show", first["id"], home=here).out
    assert "used     2 requests, 4000 tokens in (0 cached), 400 out, $0.04\n" in shown
    assert "below it 1 request, 4000 tokens in (0 cached), 400 out, $0.04 (of 1)\n" in shown
    assert "4400 tokens $0.04" in cru("tasks", home=here).out


def test_a_kill_loses_no_request(tmp_path: Path) -> None:
    here = home(tmp_path)
    child = script(tmp_path, "child", f"{CHILD}call: ls {{}}\n---\ndelay: 600s\n")
    configure_scripts(here, tmp_path, script(tmp_path, "main", call("general", child)))
    with start("go", home=here) as run:
        wait_until(
            lambda: any(b"tool_result" in log.read_bytes() for log in here.context().glob("tasks/*/context.jsonl"))
        )
        run.kill()
    (row,) = tasks(here)
    assert row["status"] == "lost" and row["usage"]["cost"] == 0.02


def test_a_request_that_has_no_answer_yet_is_not_counted(tmp_path: Path) -> None:
    here = home(tmp_path)
    child = script(tmp_path, "child", "delay: 600s\n")
    configure_scripts(here, tmp_path, script(tmp_path, "main", MAIN + call("general", child)))
    with start("go", home=here) as run:
        wait_until(
            lambda: any(b'"request"' in trace.read_bytes() for trace in here.context().glob("tasks/*/trace.jsonl"))
        )
        rows = cru("/cost", home=here).out.splitlines()
        run.kill()
    assert [" 1 request, " in row for row in rows] == [True, True] and "sub-agent" not in "".join(rows)


def test_the_last_prompt_is_the_last_one_also_after_a_kill(here: HomeDir, tmp_path: Path) -> None:
    script(tmp_path, "main", "delay: 600s\n")
    with start("go", home=here) as run:
        wait_until(lambda: [line for line in here.lines("default", "trace.jsonl") if line["k"] == "request"])
        run.kill()
    script(tmp_path, "main", f"loop: yes\n{MAIN}text: done\n")
    cru("again", home=here)
    assert cru("/cost", home=here).out.splitlines()[0].endswith("1 request, 1000 tokens in (0 cached), 100 out, $0.01")


def test_a_record_of_an_older_version_is_summed_up_from_its_trace(here: HomeDir) -> None:
    cru("go", home=here)
    for file in here.context().glob("tasks/*/task.json"):
        record = json.loads(file.read_text())
        del record["usage"]
        file.write_text(json.dumps(record))
    assert [row["usage"]["cost"] for row in tasks(here)] == [0.04, 0.04]


@pytest.mark.slow
def test_an_item_of_a_batch_has_what_its_sub_agents_used(here: HomeDir) -> None:
    (here.project / "items.txt").write_text("go\n")
    done = cru("batch", "items.txt", "--out", "out.jsonl", home=here, timeout=60)
    assert done.code == 0, done
    (row,) = [json.loads(line) for line in (here.project / "out.jsonl").read_text().splitlines()]
    assert (row["tokens"]["input"], row["tokens"]["output"]) == (10000, 1000)
    assert row["tokens"]["cost"] == pytest.approx(0.1)
