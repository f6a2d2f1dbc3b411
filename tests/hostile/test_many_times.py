"""A guest that misbehaves again and again in one session: no descriptor and no process more after the last time than after the first ones."""

from __future__ import annotations

import os

import pytest
from tests.hostile import checks, roads
from tests.hostile.programs import BEHAVIOURS
from tests.hostile.roads import ROADS
from tests.kit import Call, HomeDir, Received, Reply, server, start
from tests.kit.leaks import command

TIMES = 15
FIRST = 3
NAMES = (
    "exits with 1",
    "dies in the middle of an answer",
    "quotes that do not close",
    "leaves a daemon",
    "an answer of 3 MB",
    "removes the lock",
)
WHERE = (
    "a cru hook before a call",
    "a Claude hook before a call",
    "a plugin's tool",
    "a plugin's hook before a call",
    "an MCP server that is called",
)
ROWS = [(road, name) for road in WHERE for name in NAMES]


def belongings(pid: int) -> tuple[int, int]:
    """Open descriptors and children of a process."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = [child for child in map(int, file.read().split()) if not command(child).startswith("ended")]
    return len(os.listdir(f"/proc/{pid}/fd")), len(children)


def check(home: HomeDir, road_name: str, name: str) -> None:
    road, seen = ROADS[road_name], dict[int, tuple[int, int]]()

    def reply(request: Received) -> Reply:
        number = len(model.requests)
        seen[number] = belongings(running.pid)
        call = Call(road.tool, {"command": f"echo {number}"} if road.tool == "bash" else {})
        return Reply("all is well") if number > TIMES else Reply(calls=[call])

    with server(reply) as model:
        roads.install(home, road, name, BEHAVIOURS[name], model.url)
        config = home.cru / "config.toml"
        config.write_text("max_idle_rounds = 0\n" + config.read_text())
        try:
            with start("hello", home=home) as running:
                done = running.wait(120)
        finally:
            checks.kill_started(home)
    assert done.code == 0 and len(seen) == TIMES + 1, (done, seen)
    first, last = max(seen[number] for number in (FIRST, FIRST + 1)), seen[TIMES + 1]
    assert last[0] <= first[0] + 2 and last[1] <= first[1] + 1, seen


@pytest.mark.slow
def test_a_hook_that_dies_leaves_no_descriptor(home: HomeDir) -> None:
    check(home, *ROWS[1])


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize(("road", "name"), ROWS)
def test_all(home: HomeDir, road: str, name: str) -> None:
    check(home, road, name)
