"""Kills -9 at random moments around the telling of tasks that a kill has cut off: each is told exactly once."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from tests.core.agents.support import call, configure_scripts, script
from tests.kit import cru, home, start
from tests.kit.waiting import wait_until

RUNS = 40
KILLS = 3


@pytest.mark.long
@pytest.mark.parametrize("number", range(RUNS))
def test_what_a_kill_cut_off_is_told_once_however_often_the_next_runs_are_killed(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    here = home(tmp_path)
    answer, hang = script(tmp_path, "answer", "text: found\n"), script(tmp_path, "hang", "delay: 600s\n")
    calls = "\n".join(call("explore", model, background=True) for model in (answer, hang, answer))
    model = script(tmp_path, "main", f"by: order\n{calls}\n---\ndelay: 600s")
    configure_scripts(here, tmp_path, model)
    with start("go", home=here) as run:
        wait_until(lambda: len(list(here.context().glob("tasks/*/task.json"))) == 3)
        time.sleep(chance.random() * 0.3)
        run.kill()
    ids = {file.parent.name for file in here.context().glob("tasks/*/task.json")}
    script(tmp_path, "main", "loop: yes\ndelay: 30ms\ntext: I see\n")
    for _ in range(KILLS):
        with start("and now?", home=here) as run:
            time.sleep(0.15 + chance.random() * 0.5)
            run.kill()
    assert cru("and now?", home=here).code == 0
    told = [task for entry in here.log() for task in entry.get("metadata", {}).get("tasks", ())]
    assert sorted(told) == sorted(ids), json.dumps(here.log(), indent=1)
