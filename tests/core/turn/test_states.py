from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from tests.core.turn.support import Ext, World, always
from tests.kit.tables import mermaid

from cru.core.events.answers import cancel, halt
from cru.core.events.stream import StateChanged
from cru.core.turn import BadTransition
from cru.core.turn.turn import TRANSITIONS, LegState, StateMachine


def test_every_state_is_reachable_from_idle_and_leads_back_to_it() -> None:
    for forward in (True, False):
        seen, todo = {LegState.IDLE}, [LegState.IDLE]
        while todo:
            here = todo.pop()
            nexts = [b if forward else a for a, b in TRANSITIONS if (a if forward else b) is here]
            todo += [s for s in nexts if s not in seen]
            seen.update(nexts)
        assert seen == set(LegState)


@pytest.mark.parametrize("pair", list(itertools.product(LegState, LegState)), ids=lambda p: f"{p[0]}-{p[1]}")
def test_a_transition_that_the_table_lacks_is_an_error(pair: tuple[LegState, LegState]) -> None:
    heard: list[tuple[LegState, LegState]] = []
    machine = StateMachine(lambda old, new: heard.append((old, new)))
    machine.state = pair[0]
    if pair in TRANSITIONS:
        machine.to(pair[1])
        assert heard == [pair]
    else:
        with pytest.raises(BadTransition, match=f"{pair[0]} to {pair[1]}"):
            machine.to(pair[1])
        assert machine.state is pair[0]


def test_only_settling_leads_to_idle() -> None:
    assert [a for a, b in TRANSITIONS if b is LegState.IDLE] == [LegState.SETTLING]


def test_the_drawing_has_every_arrow_of_the_table() -> None:
    lines = mermaid().splitlines()
    assert len(lines) == 2 + len(TRANSITIONS)
    for (old, new), why in TRANSITIONS.items():
        assert f"    {old} --> {new}: {why}" in lines


@pytest.mark.parametrize(
    ("script", "event", "path"),
    [
        ("text: hi\n", "", "receiving preparing calling responding settling idle"),
        ("call: ls {}\n---\ntext: hi\n", "",
         "receiving preparing calling responding tooling preparing calling responding settling idle"),
        ("text: hi\n", "message:received", "receiving settling idle"),
        ("text: hi\n", "message:before_send", "receiving preparing calling settling idle"),
        ("error: 400 no\n", "", "receiving preparing calling settling idle"),
        ("call: call_user {\"message\":\"so\"}\n", "",
         "receiving preparing calling responding tooling settling idle"),
    ],
)  # fmt: skip
def test_every_leg_ends_in_settling(tmp_path: Path, script: str, event: str, path: str) -> None:
    world = World(tmp_path, script, *([Ext({event: always(cancel("no"))})] if event else []))
    world.run("go")
    assert " ".join(change.new for change in world.of(StateChanged)) == path


@pytest.mark.parametrize(
    "event",
    ["message:received", "leg:started", "system_prompt:build", "tools:select", "message:before_send",
     "agent:responded", "tool:before_call", "permission:resolved", "tool:called", "tool:completed", "tool:settled", "output:cached",
     "tool:batch_completed", "turn:complete"],
)  # fmt: skip
def test_a_halt_is_honoured_on_every_event_of_a_turn(tmp_path: Path, event: str) -> None:
    ext = Ext({event: always(halt("enough"))})
    settings = {"tool_output_cache_threshold": 3}
    world = World(tmp_path, "call: ls {}\n---\ntext: hi\n---\ntext: next\n", ext, settings=settings)
    (tmp_path / "project" / "a_file.txt").write_text("x")

    world.session.submit("go")
    world.session.submit("and then")
    result = asyncio.run(world.session.run())
    assert result is not None
    assert result.cause == "halted"
    assert any("dropped: enough" in text for text in world.notices())
    assert [e.content for e in world.log("message") if e.role == "user"] == ["go"]
    calls = {e.tool_call_id for e in world.log("tool_call")}
    assert calls == {e.tool_call_id for e in world.log("tool_result")}
