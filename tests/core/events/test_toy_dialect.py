"""A foreign vocabulary does everything on every gate, from one small file outside the package (tests/programs)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.events.world import CALL, GATES, World, example
from tests.programs.toy_dialect import Toy, ToyError

from cru.core.events import UnknownEvent
from cru.core.events.bus import Extension, Outcome
from cru.core.events.catalog import EventRow

gates = pytest.mark.parametrize("row", GATES, ids=lambda row: row.name)
# Something else than the example's value, for each type that a writable field has.
OTHER: dict[str, Any] = {"parameters": {"top_p": 1}, "args": {"a": 1}, "env": {"A": "1"}, "fuel": 7}
LISTS: dict[str, Any] = {
    "attachments": [{"path": "a.txt", "text": "A"}],
    "messages": [{"role": "user", "content": "hi"}],
    "tools": ["read"],
}


def told(row: EventRow, rules: str) -> tuple[World, Outcome[Any]]:
    world = World()
    extension: Extension = Toy("toys", rules)
    extension.register(world.bus)
    return world, world.send(example(row))


@gates
@pytest.mark.parametrize("verb", ["deny", "halt"])
def test_it_blocks(row: EventRow, verb: str) -> None:
    _, outcome = told(row, f"{verb} {row.name}: not now")
    answer = outcome.answer
    assert (answer.decision, answer.halt, answer.reason, outcome.by) == ("deny", verb == "halt", "not now", "toys")


@gates
@pytest.mark.parametrize("verb", ["ask", "allow"])
def test_it_answers_the_question(row: EventRow, verb: str) -> None:
    _, outcome = told(row, f"{verb} {row.name}: because")
    assert outcome.answer.decision == verb


@gates
def test_it_rewrites_every_writable_field(row: EventRow) -> None:
    for field in row.writable:
        value = {**OTHER, **LISTS}.get(field, "else")
        world, outcome = told(row, f"rewrite {row.name} {field} {json.dumps(value)}")
        assert getattr(outcome.payload, field) != getattr(example(row), field)
        assert outcome.changed_by(field) == "toys"
        assert not world.warnings


@gates
def test_it_adds_context_where_context_has_a_place(row: EventRow) -> None:
    world, outcome = told(row, f"context {row.name}: read this")
    assert outcome.answer.context == (("read this",) if row.context else ())
    assert bool(world.warnings) == (not row.context)


@gates
def test_it_injects_where_an_inject_has_a_place(row: EventRow) -> None:
    world, outcome = told(row, f"inject {row.name}: go on")
    assert (outcome.answer.inject is not None) == row.inject
    assert bool(world.warnings) == (not row.inject)


@gates
def test_it_does_the_thing_itself_where_that_is_possible(row: EventRow) -> None:
    world, outcome = told(row, f"answer {row.name}: done")
    assert outcome.answer.result == ("done" if row.result else None)
    assert bool(world.warnings) == (not row.result)


def test_a_pattern_narrows_a_rule() -> None:
    world, outcome = told(
        GATES[0], "# a comment\n\ndeny tool:before_call read*: no\ndeny tool:before_call ba*: no shell"
    )
    outcome = world.send(CALL)
    assert outcome.answer.reason == "no shell"
    assert [h.skipped for h in world.line.heard] == ["pattern read*", ""]
    assert world.line.heard[1].where == "toys.toy:4"


@pytest.mark.parametrize("line", ["forbid tool:before_call: x", "rewrite tool:before_call args {", "rewrite x"])
def test_a_line_that_is_no_rule_is_reported_with_its_place(line: str) -> None:
    with pytest.raises(ToyError, match=r"toys\.toy:1"):
        told(GATES[0], line)


def test_an_unknown_event_is_reported_with_the_closest_name() -> None:
    with pytest.raises(UnknownEvent, match="did you mean `tool:before_call`"):
        told(GATES[0], "deny tool:befor_call: no")


def test_the_dialect_is_small_and_stands_on_public_names_alone() -> None:
    source = (Path(__file__).parents[2] / "programs" / "toy_dialect.py").read_text()
    imports = [line.split()[1] for line in source.splitlines() if line.startswith("from cru")]
    assert len(source.splitlines()) <= 80
    assert {name.rpartition(".")[0] for name in imports} == {"cru.core.events"}
    assert "import _" not in source and "._" not in source.replace("self._text", "")
