"""The bus: order, groups, once, re-entrancy, stops, scope and stamps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.events.world import CALL, World

from cru.core.events import answers as a
from cru.core.events.answers import PASS, Answer, Change
from cru.core.events.bus import purpose
from cru.core.events.payloads import (
    ToolBeforeCall,
    ToolCalled,
    TurnComplete,
)
from cru.core.events.stamp import MAX_DEPTH, Event

DONE = TurnComplete("done", "text", "ref_1")


def command(event: Event) -> str:
    assert isinstance(event.payload, ToolBeforeCall)
    return str(event.payload.args["command"])


def add_word(word: str) -> Callable[[Event], Answer]:
    return lambda event: a.transform(args={"command": f"{command(event)} {word}"})


def noted(order: list[str], name: str) -> Callable[[Event], None]:
    return lambda event: order.append(name)


def test_a_dispatch_to_nobody_gives_the_payload_back() -> None:
    world = World()
    outcome = world.send()
    assert outcome.payload is CALL
    assert outcome.answer is PASS
    assert not world.lines
    assert world.bus.counts == {"tool:before_call": 1}


def test_in_process_handlers_see_what_earlier_ones_changed() -> None:
    world = World()
    world.on("tool:before_call", add_word("third"), priority=200)
    world.on("tool:before_call", add_word("second"))
    world.on("tool:before_call", add_word("first"), priority=5)
    assert world.send().payload.args == {"command": "ls first second third"}


def test_lanes_run_in_process_then_commands_then_executables() -> None:
    world = World()
    order: list[str] = []
    for lane in ("executables", "commands", "inline"):
        world.on("tool:before_call", noted(order, lane), lane=lane)
    world.on("tool:before_call", noted(order, "early"), lane="executables", priority=1)
    world.send()
    assert order == ["early", "inline", "commands", "executables"]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=5), st.sampled_from(["commands", "executables"]))
def test_a_group_gets_one_input_and_composes_in_order_whoever_finishes_first(naps: list[int], lane: str) -> None:
    world = World()
    seen: list[str] = []

    def member(number: int, nap: int) -> Callable[[Event], Awaitable[Answer]]:
        async def call(event: Event) -> Answer:
            await asyncio.sleep(nap / 1000)
            seen.append(command(event))
            return Answer(changes=(Change("args", "merge", {"last": number, f"n{number}": 1}),), context=(str(number),))

        return call

    for number, nap in enumerate(naps):
        world.on("tool:before_call", member(number, nap), owner=f"p{number}", lane=lane)
    outcome = world.send()
    numbers = range(len(naps))
    assert seen == ["ls"] * len(naps)
    assert outcome.payload.args == {"command": "ls", "last": len(naps) - 1, **{f"n{i}": 1 for i in numbers}}
    assert outcome.answer.context == tuple(map(str, numbers))
    assert [h.owner for h in world.line.heard] == [f"p{i}" for i in numbers]


def concurrent(lane: str, **fields: Any) -> int:
    """How many of three handlers of a lane run at the same time."""
    world = World()
    running = [0, 0]

    async def call(event: Event) -> None:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.002)
        running[0] -= 1

    for number in range(3):
        world.on("tool:called", call, owner=f"p{number}", lane=lane, **fields)
    world.send(ToolCalled("bash", {}, "c"))
    return running[1]


def test_command_hooks_run_at_once_and_everything_else_one_after_another() -> None:
    assert [concurrent("commands"), concurrent("executables"), concurrent("inline")] == [3, 1, 1]
    assert concurrent("commands", chain=True) == 1


def test_an_entry_with_its_own_priority_forms_its_own_group() -> None:
    world = World()
    world.on("tool:before_call", add_word("a"), lane="commands", priority=50)
    world.on("tool:before_call", add_word("b"), lane="commands")
    assert world.send().payload.args == {"command": "ls a b"}


def test_members_of_a_chain_see_what_the_one_before_changed_and_stop_with_it() -> None:
    world = World()
    world.on("tool:before_call", add_word("a"), "one", lane="commands", chain=True)
    world.on("tool:before_call", lambda event: a.cancel(command(event)), "two", lane="commands", chain=True)
    once = world.on("tool:before_call", add_word("c"), "three", lane="commands", chain=True, once=True)
    assert world.send().answer.reason == "ls a"
    assert world.line.heard[2].skipped == "cancelled by two"
    assert world.bus.registry.has(once), "a handler that was skipped is not used up"


def test_the_members_of_a_parallel_group_all_run_though_one_cancels() -> None:
    world = World()
    world.on("tool:before_call", a.cancel("no"), "one", lane="commands")
    world.on("tool:before_call", a.cancel("nor here"), "two", lane="commands")
    world.on("tool:before_call", a.allow(), "three", lane="executables")
    outcome = world.send()
    assert outcome.answer.reason == "no\nnor here"
    assert outcome.by == "one, two"
    assert [h.skipped for h in world.line.heard] == ["", "", "cancelled by one"]


def test_a_handler_registered_during_a_dispatch_does_not_run_in_it() -> None:
    world = World()
    late: list[str] = []
    world.on("tool:called", lambda _e: void(world.on("tool:called", lambda _e: late.append("ran"), "late")), once=True)
    world.send(ToolCalled("bash", {}, "c"))
    assert not late
    world.send(ToolCalled("bash", {}, "c"))
    assert late == ["ran"]


def test_a_handler_removed_during_a_dispatch_does_not_run_in_it() -> None:
    world = World()
    world.on("tool:before_call", lambda _e: void(world.bus.registry.drop_owner("gone")), "remover", priority=1)
    world.on("tool:before_call", a.cancel(), "gone")
    world.on("tool:before_call", a.cancel(), "gone", lane="commands")
    assert world.send().answer is PASS
    assert [h.skipped for h in world.line.heard] == ["", "removed", "removed"]


def void(_: object) -> None:
    return None


def test_once_is_not_used_up_by_a_pattern_that_does_not_match() -> None:
    world = World()
    world.on("tool:before_call", a.cancel("once"), once=True, pattern="bash")
    assert not world.send(ToolBeforeCall("read", {}, "c")).answer.stops
    assert world.send().answer.stops
    assert not world.send().answer.stops
    assert len(world.lines) == 2, "the third dispatch had no candidate any more"


def test_once_runs_once_though_two_dispatches_meet() -> None:
    world = World()
    ran: list[int] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(0.002)

    async def both() -> None:
        await asyncio.gather(world.bus.dispatch(CALL), world.bus.dispatch(CALL))

    world.on("tool:before_call", slow, priority=1)
    world.on("tool:before_call", lambda e: ran.append(e.stamp.dispatch_seq), once=True)
    asyncio.run(both())
    assert len(ran) == 1


def test_what_a_handler_raises_is_not_dispatched_to_its_owner_again() -> None:
    world = World()
    seen: list[tuple[str, int, int]] = []

    def note(name: str) -> Callable[[Event], None]:
        return lambda event: seen.append((name, event.stamp.dispatch_seq, event.stamp.parent_seq))

    async def raising(event: Event) -> None:
        await world.bus.dispatch(ToolCalled("inner", {}, "c"))

    world.on("tool:before_call", raising, "mine")
    world.on("tool:called", note("mine"), "mine")
    world.on("tool:called", note("other"), "other")
    world.send()
    assert seen == [("other", 2, 1)]
    assert [h.skipped for h in world.lines[0].heard] == ["raised by itself", ""]
    assert world.lines[0].parent == world.lines[1].seq == 1


def test_the_frame_ends_with_the_call() -> None:
    world = World()

    async def failing(event: Event) -> None:
        raise ValueError("x")

    async def run() -> int:
        await world.bus.dispatch(ToolCalled("a", {}, "c"))
        await world.bus.dispatch(ToolCalled("b", {}, "c"))
        return sum(1 for line in world.lines for heard in line.heard if heard.skipped)

    world.on("tool:called", failing, "mine")
    assert asyncio.run(run()) == 0


def test_too_deep_is_a_failure_of_the_innermost_handler_and_ends_nothing() -> None:
    world = World()
    depths: list[int] = []
    inside: list[int] = []
    deepest: list[int] = []

    def deeper(number: int) -> Callable[[Event], Awaitable[None]]:
        async def call(event: Event) -> None:
            depths.append(number)
            inside.append(number)
            deepest.append(len(inside))
            try:
                await world.bus.dispatch(ToolCalled("x", {}, "c"))
            finally:
                inside.pop()

        return call

    for number in range(MAX_DEPTH + 4):
        world.on("tool:called", deeper(number), f"p{number}", pattern="x", once=True)
    outcome = world.send(ToolCalled("x", {}, "c"))
    assert outcome.answer is PASS
    assert depths[:MAX_DEPTH] == list(range(MAX_DEPTH)) and max(deepest) == MAX_DEPTH
    assert any(f"{MAX_DEPTH} handlers deep" in text for text in world.warnings)


def test_purpose_is_stamped_and_keeps_its_owner_out() -> None:
    world = World()
    heard: list[tuple[str, str]] = []
    world.on("tool:called", lambda e: heard.append(("titles", e.stamp.purpose)), "titles")
    world.on("tool:called", lambda e: heard.append(("other", e.stamp.purpose)), "other")

    async def run() -> None:
        with purpose("title", "titles"):
            await world.bus.dispatch(ToolCalled("a", {}, "c"))
        await world.bus.dispatch(ToolCalled("a", {}, "c"))

    asyncio.run(run())
    assert heard == [("other", "title"), ("titles", ""), ("other", "")]
