"""What decides: allow and its end, the strength of answers, cancel and halt."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.events.world import World

from cru.core.events import answers as a
from cru.core.events.answers import PASS, Answer, Change
from cru.core.events.payloads import SessionStarted, ToolCalled, TurnComplete

DONE = TurnComplete("done", "text", "ref_1")


def allow_then(*later: tuple[str, Answer, dict[str, Any]]) -> str:
    world = World()
    world.on("tool:before_call", a.allow("fine"), "judge", lane="commands", priority=50)
    for owner, answer, fields in later:
        world.on("tool:before_call", answer, owner, **fields)
    outcome = world.send()
    assert outcome.answer.decision == "none" or outcome.answer.reason == "fine" or not outcome.answer.reason
    return outcome.answer.decision


CHANGED = a.transform(args={"command": "rm"})


@pytest.mark.parametrize(
    ("later", "decision"),
    [
        ([("other", CHANGED, {})], "none"),
        ([("other", CHANGED, {"lane": "commands"})], "none"),
        ([("other", a.transform(env={"A": "1"}), {})], "none"),
        ([("judge", CHANGED, {})], "allow"),
        ([("other", CHANGED, {"lane": "commands", "priority": 50})], "none"),
        ([("other", CHANGED, {"lane": "commands", "priority": 50, "chain": True})], "none"),
        ([("other", Answer(decision="allow", changes=CHANGED.changes), {"lane": "commands", "priority": 50})], "allow"),
        ([("judge", CHANGED, {"lane": "commands", "priority": 50})], "allow"),
        ([("other", a.transform(name="x"), {})], "allow"),
        ([("other", Answer(changes=(Change("args", "set", 5),)), {"on_error": "pass"})], "allow"),
        ([("other", CHANGED, {}), ("third", a.allow(), {})], "allow"),
        ([("third", a.allow(), {}), ("third", CHANGED, {})], "allow"),
        ([("third", a.allow(), {}), ("other", CHANGED, {})], "none"),
        ([("other", CHANGED, {}), ("third", a.allow(), {}), ("judge", CHANGED, {})], "none"),
        ([("other", Answer(decision="allow", changes=CHANGED.changes), {})], "allow"),
    ],
)
def test_an_allow_covers_the_input_that_its_group_left_and_allowed(later: Any, decision: str) -> None:
    assert allow_then(*later) == decision


def test_a_voided_allow_leaves_neither_reason_nor_owner() -> None:
    world = World()
    world.on("tool:before_call", a.allow("fine"), "judge")
    world.on("tool:before_call", CHANGED, "other")
    outcome = world.send()
    assert (outcome.answer.reason, outcome.owners, outcome.deciders) == ("", ("other",), ())
    assert outcome.changed_by("args") == "other"


def test_ask_beats_allow_and_cancel_beats_ask_and_halt_beats_all() -> None:
    world = World()
    decided = []
    for priority, answer in enumerate([a.ask("a"), a.allow("b"), a.cancel("c")]):
        world.on("tool:before_call", answer, f"p{priority}", priority=priority)
        outcome = world.send()
        decided.append((outcome.answer.decision, outcome.answer.reason, outcome.by))
    assert decided == [("ask", "a", "p0"), ("ask", "a", "p0"), ("deny", "c", "p2")]


@pytest.mark.parametrize("stop", [a.cancel("no"), a.halt("no"), Answer(halt=True, reason="no")])
def test_cancel_and_halt_end_the_chain_and_drop_injects_and_context(stop: Answer) -> None:
    world = World()
    world.on("turn:complete", a.inject("go on"), "one")
    world.on("turn:complete", a.add_context("read"), "two")
    world.on("turn:complete", stop, "three")
    world.on("turn:complete", a.inject("later"), "four", lane="commands")
    outcome = world.send(DONE)
    assert outcome.answer.inject is None
    assert outcome.answer.context == ()
    assert outcome.answer.stops
    assert outcome.owners == ("three",)
    assert [h.skipped for h in world.line.heard] == ["", "", "", "cancelled by three"]
    assert world.line.decision == ("halt" if stop.halt else "deny")


def test_on_observe_events_cancel_only_stops_the_chain() -> None:
    world = World()
    world.on("tool:called", a.add_context("kept"), "one")
    world.on("tool:called", a.cancel("enough"), "two")
    world.on("tool:called", a.add_context("never"), "three")
    outcome = world.send(ToolCalled("bash", {}, "c"))
    assert outcome.answer == Answer(context=("kept",))
    assert world.line.heard[2].skipped == "cancelled by two"


def test_halt_is_honoured_on_observe_events_of_a_turn_and_not_outside_one() -> None:
    world = World()
    world.on("tool:called", a.halt("stop"))
    world.on("session:started", a.halt("stop"))
    assert world.send(ToolCalled("bash", {}, "c")).answer == a.halt("stop")
    assert world.send(SessionStarted("work", "x")).answer == PASS
    assert world.warnings == ["plugin: session:started: there is no turn to halt"]


def test_a_handler_may_answer_instead_and_the_first_result_counts() -> None:
    world = World()
    world.on("tool:before_call", a.handled({"content": "mine", "is_error": True}), "one")
    world.on("tool:before_call", a.handled("late"), "two")
    assert world.send().answer.result == {"content": "mine", "is_error": True}
