"""What a turn waited for is in its trace: tools, whether or not a handler heard of them, and persons; and nothing of another turn."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.turn.support import Person, World

from cru.core.guard.rules.gate import PermissionReply
from cru.core.records.trace import RecordedTrace
from cru.faces.cli.trace.moments import TurnMoment, read_moments


def moments_of(world: World) -> list[list[TurnMoment]]:
    """The moments of each turn."""
    world.session.parts.recorder.flush()
    folder = world.built.store.folder
    with RecordedTrace(folder) as trace:
        turns = [read_moments(folder, trace.lines(place), []) for place in trace.turns]
        assert trace.problems == []
    return turns


def test_each_turn_has_its_own_states_and_no_others(tmp_path: Path) -> None:
    world = World(tmp_path, "loop: yes\ntext: done\n")
    asyncio.run(world.asked("one", "two", "three"))
    for turn in moments_of(world):
        states = [moment.text for moment in turn if moment.what == "state"]
        assert states == ["receiving", "preparing", "calling", "responding", "settling", "idle"]


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        ("ls {}", ["tool ls: done"]),
        ('read {"file_path": "missing"}', ["tool read: failed"]),
        ('bash {"command": "echo hi"}', ["person permission: once", "tool bash: done"]),
        ("nothing {}", ["tool nothing: unknown"]),
    ],
)
def test_calls_without_handlers_and_waits_for_a_person_have_rows(tmp_path: Path, call: str, rows: list[str]) -> None:
    person = Person(PermissionReply("once"))
    world = World(tmp_path, f"call: {call}\n---\ntext: done\n", asker=person)
    world.run("go")
    (turn,) = moments_of(world)
    shown = [f"{moment.what} {moment.text}" for moment in turn if moment.what in ("tool", "person")]
    assert [row.rpartition(", ")[0] for row in shown] == rows and all(row.endswith(" ms") for row in shown)
    assert [moment.time for moment in turn] == sorted(moment.time for moment in turn)


@pytest.mark.parametrize(("choice", "outcome"), [("no", "human"), (None, "policy")])
def test_a_refusal_says_who_was_asked_and_what_became_of_the_call(
    tmp_path: Path, choice: str | None, outcome: str
) -> None:
    person = Person(PermissionReply("no") if choice else None)
    world = World(tmp_path, 'call: bash {"command": "echo hi"}\n---\ntext: done\n', asker=person)
    world.run("go")
    (turn,) = moments_of(world)
    shown = [moment.text.rpartition(", ")[0] for moment in turn if moment.what in ("tool", "person")]
    assert shown == [f"permission: {choice or 'nobody'}", f"bash: {outcome}"]
