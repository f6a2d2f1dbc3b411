"""Hostile programs on every road into a run, through the real command (programs.py and roads.py are the tables)."""

from __future__ import annotations

import pytest
from tests.hostile import checks, roads
from tests.hostile.programs import BEHAVIOURS
from tests.hostile.roads import ROADS
from tests.kit import Call, HomeDir, Received, Reply, cru, server
from tests.kit.steps import Rule

ROWS = [(road, name) for road in ROADS for name in BEHAVIOURS]
SHORT = [(road, name) for road, name in ROWS if ROADS[road].short and BEHAVIOURS[name].short]


def rule(tool: str) -> Rule:
    """Ask for the tool, so that the guest has its moment, and be content with whatever came of it."""

    def reply(request: Received) -> Reply:
        messages = request.body["messages"]
        asked = "again" in str(messages[-1]["content"]) or messages[-1]["role"] == "tool"
        return (
            Reply("all is well") if asked else Reply(calls=[Call(tool, {"command": "true"} if tool == "bash" else {})])
        )

    return reply


def check(home: HomeDir, road_name: str, name: str) -> None:
    road, behaviour = ROADS[road_name], BEHAVIOURS[name]
    with server(rule(road.tool)) as model:
        file = roads.install(home, road, name, behaviour, model.url)
        try:
            done = cru("hello", home=home)
            print(done)
            checks.check_messages(
                done, behaviour.codes or road.codes, passed_on=1 << 20 if road.role == "program" else 0
            )
            if road.role == "server" or not behaviour.leaves:
                checks.check_processes(home)
        finally:
            checks.kill_started(home)
        roads.uninstall(home, road, file, model.url)
        home.project.mkdir(exist_ok=True)
        again = checks.check_next_run(home)
        print(again)
    if not behaviour.harms:
        is_early = done.code not in (0, 3) and road.moment == "schema"
        checks.check_log(home, ["again"] if is_early else ["hello", "again"])
        checks.check_files(home)
        assert "not an entry" not in again.err


@pytest.mark.sample(1)
@pytest.mark.parametrize(("road", "name"), SHORT)
def test_short(home: HomeDir, road: str, name: str) -> None:
    check(home, road, name)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize(("road", "name"), ROWS)
def test_all(home: HomeDir, road: str, name: str) -> None:
    check(home, road, name)
