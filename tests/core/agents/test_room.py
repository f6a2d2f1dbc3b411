"""How many sub-agents ask one model at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.agents.support import call, rule_for_scripts, script
from tests.kit import HomeDir, cru, home, start
from tests.kit.waiting import wait_until

DONE = "---\ntext: done\n"
WAIT = 'call: bash {"command": "while [ ! -e go ]; do sleep 0.02; done"}\n---\ntext: found\n'


def rows(here: HomeDir) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = json.loads(cru("tasks", "--json", home=here).out)
    return value


def statuses(here: HomeDir) -> list[str]:
    return sorted(row["status"] for row in rows(here))


@pytest.mark.sample(1)
@pytest.mark.parametrize("pattern", ["scripted:*/small.txt", "*small*"])
def test_agents_of_one_model_wait_for_one_another_and_others_do_not(tmp_path: Path, pattern: str) -> None:
    here = home(tmp_path)
    small, large = script(tmp_path, "small", WAIT), script(tmp_path, "large", WAIT)
    calls = "\n".join(call("general", model, background=True) for model in (small, small, small, large))
    model = script(tmp_path, "main", f"by: order\n{calls}\n{DONE * 5}")
    here.configure(f'model = "{model}"\nmode = "trust"\n[tasks.per_model]\n"{pattern}" = 1\n')
    with start("go", home=here) as run:
        wait_until(lambda: statuses(here) == ["running", "running", "waiting", "waiting"])
        listed = cru("tasks", home=here).out
        assert listed.count("  waiting  ") == 2
        (here.project / "go").touch()
        assert run.wait().code == 0
    ends = [(row["started"], row["ended"]) for row in rows(here) if "small" in row["model"]]
    assert statuses(here) == ["completed"] * 4
    assert all(later[0] >= earlier[1] for earlier, later in zip(sorted(ends), sorted(ends)[1:], strict=False))


def test_an_agent_below_another_of_the_same_model_does_not_wait_for_it(tmp_path: Path) -> None:
    here = home(tmp_path)
    child = script(
        tmp_path, "child", f"{call('general', script(tmp_path, 'deepest', 'text: found'))}\n---\ntext: below\n"
    )
    model = script(tmp_path, "main", f"{call('general', child)}\n{DONE}")
    here.configure(f'model = "{model}"\n[tasks.per_model]\n"*" = 1\n{rule_for_scripts(tmp_path)}')
    assert cru("go", home=here).out == "done\n" and statuses(here) == ["completed"] * 2


def test_one_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    here = home(tmp_path)
    small = script(tmp_path, "small", "delay: 600s\n")
    calls = "\n".join(call("general", small, background=True) for _ in range(2))
    model = script(tmp_path, "main", f"by: order\n{calls}\n{DONE * 5}")
    here.configure(f'model = "{model}"\n[tasks.per_model]\n"*" = 1\n{rule_for_scripts(tmp_path)}')
    with start("go", home=here) as run:
        wait_until(lambda: statuses(here) == ["running", "waiting"])
        for status in ("waiting", "running"):
            (row,) = [row for row in rows(here) if row["status"] == status]
            assert cru("tasks", "cancel", row["id"], home=here).out == f"task {row['id']}: cancelled\n"
        assert run.wait().code == 0


@pytest.mark.parametrize("setting", ['"*" = 0', '"*" = "x"', "per_model = 3"])
def test_a_limit_that_is_none_is_an_error(tmp_path: Path, setting: str) -> None:
    here = home(tmp_path)
    table = "[tasks]\n" if "per_model" in setting else "[tasks.per_model]\n"
    here.configure(f'model = "{script(tmp_path, "main", "text: done")}"\n{table}{setting}\n')
    done = cru("go", home=here)
    assert done.code != 0 and "per_model" in done.err and "Traceback" not in done.err
